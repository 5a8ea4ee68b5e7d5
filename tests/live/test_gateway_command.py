"""``tidegate gateway`` as a person runs it."""

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from support.bus import ControlBus
from support.clients import CONNACK, is_closed, received
from support.credentials import connect_packet, settled
from support.gateways import Running
from support.processes import GATEWAY
from support.waiting import until

from tidegate.gateway.settings import GatewaySettings
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live


def test_a_port_in_use_is_the_users_mistake(running: Running) -> None:
    settings = GatewaySettings(port=running.address[1])
    with pytest.raises(UserError, match="in use"), Running(running.here, settings):
        pass


def test_the_command_says_where_it_is_reports_and_ends_in_order(installation: Installation, state: Path) -> None:
    arguments = ["--name", "by-command", "--state", str(state)]
    with subprocess.Popen([*GATEWAY, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("Gateway by-command is ready at 127.0.0.1:"), line
        port = int(line.split(" ")[5].split(":")[1])
        with (
            ControlBus(installation) as bus,
            socket.create_connection(("127.0.0.1", port), 10) as device,
        ):
            device.sendall(connect_packet(settled(installation, state), "d"))
            assert received(device, 4) == CONNACK

            until(lambda: bus.gateway("by-command").connections == 1)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert is_closed(device)
            assert process.wait(10) == 0
            assert time.monotonic() - begun < 5
        assert process.stderr.read() == ""
