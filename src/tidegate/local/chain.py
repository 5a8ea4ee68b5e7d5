"""Brokers, gateway, controllers and processing nodes of one state directory, as ``tidegate up`` and the demo run them.

The brokers are this process's own children; every other part is a ``tidegate`` command of its own, found again by the
addresses in the installation file, so that a part can just as well be started by hand or on another machine.
"""

import json
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tidegate.brokers.assignment import Assignments
from tidegate.brokers.disk_guard import DiskGuard
from tidegate.brokers.embedded import EmbeddedBrokers, free_port, is_free, write_private
from tidegate.brokers.knowledge import Knowledge
from tidegate.brokers.server_config import HOST
from tidegate.brokers.wire import Wire
from tidegate.local.parts import Part, Say, stop_all
from tidegate.model.errors import BrokerUnavailableError, TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.settings import Settings

PLACES_FILE = "places.json"
READY_S_MAX = 120.0
POLL_S = 0.1


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Ports and token, kept over restarts: an address that somebody wrote down stays true."""

    gateway_mqtt: int
    gateway_http: int
    web: int
    token: str


class Chain:
    """Use as a context manager. ``start`` brings everything up, ``watch`` is to be called about once a second."""

    def __init__(
        self,
        state: Path,
        settings: Settings,
        say: Say,
        *,
        nodes: int = 1,
        controllers: int = 1,
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
        logs: bool = False,
    ) -> None:
        self.state = state.absolute()
        self._settings = settings
        self._say = say
        self._config = config
        self._environment = dict(environment or {})
        self._logs = self.state / "logs" if logs else None
        self._counts = {"controller": controllers, "node": nodes}
        self.brokers = EmbeddedBrokers(self.state, settings.broker)
        self.parts: dict[str, Part] = {}
        self.web_addresses: list[tuple[str, int]] = []  # one per controller, the one that was given out first
        self._alarm: str | None = None
        self._wires: list[Wire] = []

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def installation(self) -> Installation:
        assert self.brokers.installation is not None
        return self.brokers.installation

    # -- starting

    def start_brokers(self) -> Installation:
        self.brokers.start()
        places = self._places()
        self.brokers.installation = msgspec.structs.replace(
            self.installation,
            gateway_mqtt=(HOST, places.gateway_mqtt),
            gateway_http=(HOST, places.gateway_http),
            web=(HOST, places.web),
            token=places.token,
        )
        self.installation.save(self.state)
        control = self._wire(self.installation.control_urls)
        self._assignments = Assignments(Knowledge(control), self.installation.slices)
        self._guard = DiskGuard(
            self._wire(self.installation.data_urls),
            self.installation.monitor_urls,
            self.brokers.store_directories,
            self._settings.broker.disk_bytes_max,
        )
        return self.installation

    def _wire(self, urls: tuple[str, ...]) -> Wire:
        self._wires.append(Wire(urls, name="tidegate-up"))
        return self._wires[-1]

    def start_parts(self) -> None:
        """Start every other process; ``wait_ready`` says when they serve."""
        if self._logs is not None:
            self._logs.mkdir(mode=0o700, exist_ok=True)
        assert self.installation.gateway_mqtt is not None
        assert self.installation.gateway_http is not None
        assert self.installation.web is not None
        mqtt, http = self.installation.gateway_mqtt[1], self.installation.gateway_http[1]
        self._add("gateway-1", "gateway", "--port", str(mqtt), "--http-port", str(http))
        taken = {mqtt, http, self.installation.web[1]}
        self.web_addresses = [self.installation.web]
        self.web_addresses += [(HOST, free_port(taken)) for _ in self._names("controller")[1:]]
        for name, (_, port) in zip(self._names("controller"), self.web_addresses, strict=True):
            self._add(name, "controller", "--web-port", str(port))
        for name in self._names("node"):
            self._add(name, "node")
        self._started_s = time.time()
        for part in self.parts.values():
            part.start()

    @property
    def part_names(self) -> list[str]:
        return ["gateway-1", *self._names("controller"), *self._names("node")]

    def _names(self, kind: str) -> list[str]:
        return [f"{kind}-{number}" for number in range(1, self._counts[kind] + 1)]

    def _add(self, name: str, command: str, *options: str) -> None:
        arguments = [command, "--name", name, "--state", str(self.state), *options]
        if self._config is not None:
            arguments += ["--config", str(self._config)]
        log = None if self._logs is None else self._logs / f"{name}.log"
        self.parts[name] = Part(name, arguments, self._environment, log)

    def ready(self) -> Iterator[str]:
        """The parts that serve, each once, as they become ready. Raises if one cannot start or takes too long."""
        waiting = dict.fromkeys(self.parts)
        deadline = time.monotonic() + READY_S_MAX
        while waiting:
            self.keep_parts()
            for name in [name for name in waiting if self._serves(name)]:
                del waiting[name]
                yield name
            if time.monotonic() > deadline:
                raise TidegateError(f"{', '.join(waiting)} did not become ready in {READY_S_MAX:.0f} s: see its log.")
            yield ""
            time.sleep(POLL_S)

    def _serves(self, name: str) -> bool:
        if name.startswith("node-"):
            try:
                document = self._assignments.progress(name)
            except BrokerUnavailableError:
                return False
            # Holding a lease is not enough: the first batch, which starts the planner and the tables, takes seconds.
            return document is not None and json.loads(document)["at"] > self._started_s and b'"batch"' in document
        if name.startswith("gateway-"):
            assert self.installation.gateway_mqtt is not None
            return _answers(self.installation.gateway_mqtt)
        return _answers(self.web_addresses[self._names("controller").index(name)])

    # -- running

    def keep_parts(self) -> None:
        for part in self.parts.values():
            part.keep_running(self._say)

    def watch(self) -> None:
        """Start again what ended, and look after the disk."""
        self.keep_parts()
        try:
            found = self._guard.check().alarm
        except BrokerUnavailableError as error:
            found = str(error)
        if found != self._alarm:
            self._say(f"ALARM: {found}" if found else "The alarm is over.")
            self._alarm = found

    def stop(self) -> None:
        """Devices first, then what works for them, the brokers last. Safe to call twice, and at any moment."""
        stop_all(list(self.parts.values()), self._say)
        self.parts.clear()
        for wire in self._wires:
            wire.close()
        self._wires.clear()
        self.brokers.stop()

    # -- places

    def _places(self) -> Places:
        """Those of last time where they are still free, the chosen ones, else new ones."""
        path = self.state / PLACES_FILE
        before = Places(gateway_mqtt=0, gateway_http=0, web=0, token="")
        if path.exists():
            try:
                before = msgspec.json.decode(path.read_bytes(), type=Places)
            except msgspec.DecodeError as error:
                raise UserError(
                    f"{path} is damaged ({error}): delete it, and new ports and a token are made."
                ) from None
        taken: set[int] = set()
        gateway = self._settings.gateway
        places = Places(
            gateway_mqtt=_settle(gateway.port, before.gateway_mqtt, taken, "gateway.port"),
            gateway_http=_settle(gateway.http_port, before.gateway_http, taken, "gateway.http_port"),
            web=_settle(self._settings.web.port, before.web, taken, "web.port"),
            token=before.token or secrets.token_urlsafe(24),
        )
        write_private(path, msgspec.json.encode(places))
        return places


def _settle(chosen: int, before: int, taken: set[int], setting: str) -> int:
    if chosen and (chosen in taken or not is_free(chosen)):
        raise UserError(f"Port {chosen} ({setting}) is in use: end the program that has it, or choose another.")
    port = chosen or (before if before and before not in taken and is_free(before) else free_port(taken))
    taken.add(port)
    return port


def _answers(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=0.5):
            return True
    except OSError:
        return False
