"""The gateways that are attacked: one before the embedded broker with every listener, one before Mosquitto, and one
that may open few files."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.gateway.identity.hashing import hashed
from tidegate.machine.ports import HOST
from tidegate.machine.spawning import Spawner
from tidegate_bench.hostile.attacks import CONNECT_TIMEOUT_S
from tidegate_bench.hostile.sieges import ABSENT, FILE_USER
from tidegate_bench.interop import stacks
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.servers import ServerProcess, Starter

# So few that strangers reach the quarter that may be theirs.
CONNECTIONS_MAX = 4_000
OPEN_FILES_MAX = 512


class Attacked(msgspec.Struct, frozen=True, kw_only=True):
    server: ServerProcess
    listeners: dict[str, tuple[str, int]]
    certificate: Certificate | None = None

    @property
    def state(self) -> Path:
        assert self.server.state is not None
        return self.server.state


class FewFiles(Starter):
    """What it starts may open few files."""

    @contextlib.contextmanager
    def started(
        self, name: str, command: list[str], port: int, tls_port: int = 0, *, words: str = ""
    ) -> Iterator[ServerProcess]:
        limited = ["sh", "-c", f'ulimit -n {OPEN_FILES_MAX}; exec "$@"', "sh", *command]
        with super().started(name, limited, port, tls_port, words=words) as server:
            yield server


@contextlib.contextmanager
def at_nats(state: Path, servers: Starter) -> Iterator[Attacked]:
    """Five listeners, passwords of both kinds, and an application that may read everything."""
    certificate = Certificate.made(state)
    ports = {name: servers.free_port() for name in ("websocket", "proxy", "tls", "http")}
    listeners = [
        {"port": ports["websocket"], "protocol": "websocket"},
        {"port": ports["proxy"], "proxy_protocol": True},
        {"port": ports["tls"], "certificate": str(certificate.certificate), "key": str(certificate.key)},
    ]
    passwords = state / "passwords"
    passwords.write_text(f"{FILE_USER}:{hashed(b'no guess').text()}\n")
    identity = {
        "methods": ["derived", "file"],
        "file": {"path": str(passwords)},
        "applications": [{"name": ABSENT, "subscribes": ["telemetry/#"]}],
    }
    settings = {**_settings(ports["http"]), "connections_max": CONNECTIONS_MAX, "listeners": listeners}
    with servers.gateway(state, settings, identity=identity) as server:
        addresses = {"mqtt": server.address, **{name: (HOST, port) for name, port in ports.items()}}
        yield Attacked(server=server, listeners=addresses, certificate=certificate)


@contextlib.contextmanager
def at_mosquitto(state: Path, servers: Starter) -> Iterator[Attacked]:
    """With the control bus, and so the keys, of the other installation."""
    directory, http_port = state / "mosquitto", servers.free_port()
    with (
        stacks.mosquitto(directory, servers, load_installation(state).control_urls),
        servers.gateway(directory, _settings(http_port)) as server,
    ):
        yield Attacked(server=server, listeners={"mqtt": server.address, "http": (HOST, http_port)})


@contextlib.contextmanager
def with_few_files(state: Path, servers: Starter) -> Iterator[Attacked]:
    http_port, spawner = servers.free_port(), Spawner()
    try:
        with FewFiles(state, spawner).gateway(state, _settings(http_port)) as server:
            yield Attacked(server=server, listeners={"mqtt": server.address, "http": (HOST, http_port)})
    finally:
        spawner.close()


def _settings(http_port: int) -> dict[str, Any]:
    return {"processes": 2, "connect_timeout_s": CONNECT_TIMEOUT_S, "http_port": http_port}
