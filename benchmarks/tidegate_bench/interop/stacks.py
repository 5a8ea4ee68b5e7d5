"""The brokers that clients reach directly and through a gateway, each as an installation."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.machine.ports import HOST
from tidegate.model.installation import Installation
from tidegate_bench.rig.programs import installed
from tidegate_bench.rig.servers import Starter

_USER, _PASSWORD = "device", "interop"
_MOSQUITTO = """\
listener {port} {host}
allow_anonymous false
password_file {passwords}
persistence false
user {user}
"""


@contextlib.contextmanager
def nats(state: Path) -> Iterator[Installation]:
    """The embedded broker and its control bus."""
    with EmbeddedBrokers(state, BrokerSettings(nodes=1, slices=1)) as brokers:
        assert brokers.installation is not None
        yield brokers.installation


@contextlib.contextmanager
def mosquitto(state: Path, servers: Starter, control_urls: tuple[str, ...]) -> Iterator[Installation]:
    """Mosquitto as an installation, with the control bus of another: from there a gateway knows who is who."""
    state.mkdir(mode=0o700)
    port, passwords = servers.free_port(), state / "passwords"
    subprocess.run(
        [installed("mosquitto_passwd", "mosquitto"), "-b", "-c", passwords, _USER, _PASSWORD],
        check=True,
        capture_output=True,
    )
    config = state / "mosquitto.conf"
    # Started by root, it would give its rights up before it reads.
    user = psutil.Process().username()
    config.write_text(_MOSQUITTO.format(port=port, host=HOST, passwords=passwords, user=user))
    with servers.started("mosquitto", [installed("mosquitto"), "-c", str(config)], port):
        installation = Installation(
            control_urls=control_urls,
            data_urls=(),
            mqtt_addresses=((HOST, port),),
            monitor_urls=(),
            mqtt_user=_USER,
            mqtt_password=_PASSWORD,
            slices=0,
            tables=str(state / "tables"),
        )
        save_installation(installation, state)
        yield installation
