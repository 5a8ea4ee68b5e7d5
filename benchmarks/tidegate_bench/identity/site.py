"""Where the matrix is played: two brokers, a gateway command before each, one more whose broker decides, and what every
client shows."""

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidegate.bus.installation import save_installation
from tidegate.machine.ports import HOST
from tidegate.model.installation import Installation
from tidegate_bench.identity.cells import EDGES, MOSQUITTO, NATS, SPOKEN_FOR, Cell, Layer, Transport
from tidegate_bench.identity.client import MatrixClient
from tidegate_bench.identity.commands import tidegate
from tidegate_bench.identity.grounds import Grounds
from tidegate_bench.identity.proofs import DISPATCHER, LISTENER, Proofs
from tidegate_bench.identity.service import AccountService
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.programs import installed

# The order in which they are asked; the broker is never asked beside others here.
TOGETHER = ("derived", "file", "jwt", "certificate", "http")
_USER, _PASSWORD = "gateway", "password of the gateway"
_MOSQUITTO = """\
listener {port} {host}
allow_anonymous false
password_file {passwords}
persistence false
set_tcp_nodelay true
"""

Address = tuple[str, int]
# By layer, and whether clients show certificates there.
Listeners = Mapping[tuple[Layer, bool], Address]


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway, its listeners, and the broker's own."""

    listeners: Listeners
    broker_address: Address


class Site(msgspec.Struct, frozen=True, kw_only=True):
    installation: Installation
    doors: Mapping[tuple[str, bool], Door]  # by broker, and whether it decides about credentials
    proofs: Proofs
    authority: Path

    def door(self, cell: Cell) -> Door:
        return self.doors[cell.broker, cell.method == "broker"]

    def address(self, cell: Cell) -> Address:
        return self.door(cell).listeners[cell.transport.layer, cell.shows_certificate]

    def authority_for(self, cell: Cell) -> str | None:
        """What to believe where a cell speaks TLS."""
        return str(self.authority) if cell.transport.layer == "tls" or cell.shows_certificate else None

    @contextlib.contextmanager
    def application(self, broker: str, name: str) -> Iterator[MatrixClient]:
        client = MatrixClient(Transport("MQTT 3.1.1", 4, "plain"), self.proofs.application(name), f"{name}-{_token()}")
        told = client.open(self.doors[broker, False].listeners["plain", False])
        assert told.granted, f"the application {name} is not let in: {told.words}"
        try:
            yield client
        finally:
            client.close()


class Builder:
    def __init__(self, grounds: Grounds) -> None:
        self._directory, self._state = grounds.directory, grounds.state
        self._installation, self._servers = grounds.installation, grounds.servers
        self._certificate = Certificate.made(self._directory)

    @contextlib.contextmanager
    def built(self, cells: Sequence[Cell], service: AccountService) -> Iterator[Site]:
        proofs = Proofs(self._directory, self._state, cells, service)
        tidegate("access", "apply", self._access(), state=self._state)
        together = {
            "methods": TOGETHER,
            "file": {"path": str(proofs.password_file)},
            "jwt": {"keys": [str(proofs.signer.public_key)], "algorithms": ["ES256"]},
            "http": {"url": service.url, "timeout_s": 10.0},
        }
        passed_on = {"methods": ["broker"]}
        nats = self._installation.mqtt_addresses[0]
        with contextlib.ExitStack() as opened:
            mosquitto, state = opened.enter_context(self._mosquitto(proofs.broker_passwords))
            doors = {}
            for broker, decides, address, place, identity in (
                (NATS, False, nats, self._state, together),
                (MOSQUITTO, False, mosquitto, state, together),
                (MOSQUITTO, True, mosquitto, state, passed_on),
            ):
                listeners, settings = self._listeners(proofs)
                started = opened.enter_context(self._servers.gateway(place, settings, identity=identity))
                listeners["plain", False] = started.address
                doors[broker, decides] = Door(listeners=listeners, broker_address=address)
            authority = self._certificate.certificate
            yield Site(installation=self._installation, doors=doors, proofs=proofs, authority=authority)

    def _access(self) -> str:
        """One application that listens to everything, one that sends to devices, and edge gateways."""
        applications: list[dict[str, Any]] = [
            {"name": LISTENER, "subscribes": ["#"]},
            {"name": DISPATCHER, "publishes": ["downlink/#"]},
            *({"name": name, "speaks_for": [f"{SPOKEN_FOR}*"], "methods": [how]} for how, name in EDGES.items()),
        ]
        path = self._directory / "access.yaml"
        path.write_bytes(msgspec.yaml.encode({"applications": applications}))
        return str(path)

    @contextlib.contextmanager
    def _mosquitto(self, passwords: Path) -> Iterator[tuple[Address, Path]]:
        """Its address, and a directory that says so to a gateway. The control bus is that of the installation."""
        add_user = [installed("mosquitto_passwd", "mosquitto"), "-b", str(passwords), _USER, _PASSWORD]
        subprocess.run(add_user, check=True, capture_output=True)
        passwords.chmod(0o644)  # started by root, mosquitto gives its rights up before it reads
        port, state = self._servers.free_port(), self._directory / "mosquitto"
        state.mkdir()
        config = self._directory / "mosquitto.conf"
        config.write_text(_MOSQUITTO.format(port=port, host=HOST, passwords=passwords))
        with self._servers.started("mosquitto", [installed("mosquitto"), "-c", str(config)], port):
            own = {"mqtt_addresses": ((HOST, port),), "mqtt_user": _USER, "mqtt_password": _PASSWORD}
            save_installation(msgspec.structs.replace(self._installation, **own), state)
            yield (HOST, port), state

    def _listeners(self, proofs: Proofs) -> tuple[dict[tuple[Layer, bool], Address], dict[str, Any]]:
        """Those beside the plain one, and the settings that open them."""
        own = {"certificate": str(self._certificate.certificate), "key": str(self._certificate.key)}
        verifying = {**own, "client_ca": str(proofs.devices.certificate)}
        wanted: dict[tuple[Layer, bool], dict[str, Any]] = {
            ("websocket", False): {"protocol": "websocket"},
            ("tls", False): own,
            ("tls", True): verifying,
            ("websocket", True): {"protocol": "websocket", **verifying},
            ("http", True): {"protocol": "http", **verifying},
        }
        ports = {place: self._servers.free_port() for place in wanted}
        http_port = self._servers.free_port()
        listeners = [{"port": ports[place], **settings} for place, settings in wanted.items()]
        found: dict[tuple[Layer, bool], Address] = {place: (HOST, port) for place, port in ports.items()}
        found["http", False] = (HOST, http_port)
        return found, {"processes": 2, "http_port": http_port, "listeners": listeners}


def _token() -> str:
    return f"{time.monotonic_ns():x}"
