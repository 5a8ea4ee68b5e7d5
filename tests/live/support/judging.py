"""Gateways with the identity they have by default, on each kind of broker, and what operators do to them meanwhile."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Started, started
from support.credentials import password
from support.wire import Wire
from tidegate.cli.main import run
from tidegate.model.installation import Installation
from tidegate_bench.interop import stacks
from tidegate_bench.rig.servers import starter

EMBEDDED, MOSQUITTO = "embedded", "mosquitto"
# On the embedded brokers MQTT 5 ends at the gateway; Mosquitto speaks it itself.
BROKERS = (EMBEDDED, MOSQUITTO)
VERSIONS = pytest.mark.parametrize("version", [pytest.param(4, id="3.1.1"), pytest.param(5, id="5")])


@contextlib.contextmanager
def judging(kind: str, here: Installation, state: Path, **settings: float) -> Iterator[Started]:
    """``here`` has the control bus, and the brokers where they are the embedded ones."""
    with contextlib.ExitStack() as opened:
        if kind == MOSQUITTO:
            if shutil.which("mosquitto") is None:
                pytest.skip("left out: Mosquitto is not installed")
            servers = opened.enter_context(starter(state))
            here = opened.enter_context(stacks.mosquitto(state / "mosquitto", servers, here.control_urls))
        yield opened.enter_context(started(here, state, f"before-{kind}", **settings))


def command(gateway: Started, *arguments: str) -> None:
    """``tidegate`` with these arguments ends well."""
    assert run([*arguments, "--state", str(gateway.state_directory)]) == 0


def apply_access(gateway: Started, text: str) -> None:
    file = gateway.state_directory / "access.yaml"
    file.write_text(text)
    command(gateway, "access", "apply", str(file))


@contextlib.contextmanager
def client(
    gateway: Started, name: str, version: int = 4, client_id: str | None = None, will: str = ""
) -> Iterator[Wire]:
    """Somebody who is let in by the name it has."""
    with contextlib.closing(Wire(gateway.address, version)) as connected:
        answer = connected.connect(name, password(gateway.here, name), will=will)
        assert answer.code == 0, answer
        yield connected
