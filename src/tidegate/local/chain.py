"""Brokers, gateway, controllers and processing nodes of one state directory, as ``tidegate up`` and the demo run them.

The brokers are this process's own children; every other part is a ``tidegate`` command of its own, found again by the
addresses in the installation file, so that a part can just as well be started by hand or on another machine.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tidegate.brokers.opening import embedded_servers
from tidegate.brokers.port import DiskGuard, SessionQuotas
from tidegate.bus import identity
from tidegate.bus.client import Bus
from tidegate.bus.documents import PROGRESS, UP_ALARMS
from tidegate.bus.installation import save_installation
from tidegate.local.nodes import Nodes
from tidegate.local.parts import Part, Say, stop_all
from tidegate.local.places import settle_places
from tidegate.local.waiting import answers
from tidegate.machine.disks import shortages
from tidegate.machine.ports import HOST, free_port
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.settings.tree import Settings

READY_S_MAX = 120.0
# A bus that hangs may not keep the chain from looking after its other parts.
BUS_S_MAX = 1.0
# Longer than a look after all parts takes, so that an alarm that stands does not flicker.
ALARM_LEASE_S = 15.0
POLL_S = 0.1


class Chain:
    """Use as a context manager. Start the brokers, then the parts; call ``watch`` about once a second from then on."""

    def __init__(
        self,
        state: Path,
        settings: Settings,
        say: Say,
        *,
        nodes: int = 1,
        nodes_max: int | None = None,
        controllers: int = 1,
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
        logs: bool = False,
    ) -> None:
        self._nodes_max = nodes if nodes_max is None else nodes_max
        if self._nodes_max < nodes:
            raise UserError(
                f"{nodes} nodes are more than --nodes-max {self._nodes_max} allows: raise it or leave it out."
            )
        self.state = state.absolute()
        self._settings = settings
        self._say = say
        self._config = config
        # Controllers must not ask for more nodes than this machine may start.
        self._environment = {"TIDEGATE_CONTROLLER__NODES_MAX": str(max(1, self._nodes_max)), **(environment or {})}
        self._logs = self.state / "logs" if logs else None
        self._counts = {"controller": controllers, "node": nodes}
        self.brokers = embedded_servers(self.state, settings.broker)
        self.parts: dict[str, Part] = {}
        self.web_addresses: list[tuple[str, int]] = []  # one per controller, the one that was given out first
        self._alarms: tuple[str, ...] = ()
        self._buses: list[Bus] = []
        self._guard: DiskGuard | None = None
        self._quotas: SessionQuotas | None = None

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
        places = settle_places(self.state, self._settings)
        self.brokers.installation = msgspec.structs.replace(
            self.installation,
            gateway_mqtt=(HOST, places.gateway_mqtt),
            gateway_http=(HOST, places.gateway_http),
            web=(HOST, places.web),
            token=places.token,
        )
        save_installation(self.installation, self.state)
        self._bus = self._connect()
        self._quick_bus = self._connect(timeout_s=BUS_S_MAX)
        self.keys = identity.settle(self._bus, self.state, self._say)
        self._nodes = Nodes(
            self.parts,
            self._start_node,
            self._quick_bus,
            self._say,
            at_start=self._counts["node"],
            most=self._nodes_max,
        )
        self._nodes.announce()
        self._guard = self.brokers.disk_guard()
        self._quotas = self.brokers.session_quotas()
        return self.installation

    def _connect(self, *, timeout_s: float = 5.0) -> Bus:
        self._buses.append(Bus(self.installation.control_urls, timeout_s=timeout_s, name="tidegate-up"))
        return self._buses[-1]

    def start_parts(self) -> None:
        """Start every other process; ``ready`` tells when they serve."""
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
        for name in self._maintainers:
            self._add(name, "maintainer")
        self._started_s = time.time()
        for part in self.parts.values():
            part.start()

    @property
    def part_names(self) -> list[str]:
        return ["gateway-1", *self._names("controller"), *self._names("node"), *self._maintainers]

    @property
    def _maintainers(self) -> list[str]:
        return ["maintainer-1"] if self._settings.maintenance.enabled else []

    def _names(self, kind: str) -> list[str]:
        return [f"{kind}-{number}" for number in range(1, self._counts[kind] + 1)]

    def _add(self, name: str, command: str, *options: str) -> None:
        arguments = [command, "--name", name, "--state", str(self.state), *options]
        if self._config is not None:
            arguments += ["--config", str(self._config)]
        log = None if self._logs is None else self._logs / f"{name}.log"
        self.parts[name] = Part(name, arguments, self._environment, log)

    def _start_node(self, name: str) -> None:
        self._add(name, "node")
        self.parts[name].start()

    def ready(self) -> Iterator[str]:
        """The parts that serve, each once, as they become ready. Raises if one cannot start or takes too long."""
        waiting = dict.fromkeys(self.parts)
        deadline_s = time.monotonic() + READY_S_MAX
        while waiting:
            self.keep_parts(at_start=True)
            for name in [name for name in waiting if self._serves(name)]:
                del waiting[name]
                yield name
            if time.monotonic() > deadline_s:
                raise TidegateError(f"{', '.join(waiting)} did not become ready in {READY_S_MAX:.0f} s: see its log.")
            yield ""
            time.sleep(POLL_S)

    def _serves(self, name: str) -> bool:
        if name.startswith("node-"):
            try:
                said = self._bus.get(PROGRESS, name)
            except (BrokerUnavailableError, DamagedDocumentError):
                return False
            # Holding a lease is not enough: the first batch, which starts the planner and the tables, takes seconds.
            return said is not None and said.at_s > self._started_s and said.ready
        if name.startswith("maintainer-"):
            return self.parts[name].is_running  # nobody waits for it
        if name.startswith("gateway-"):
            assert self.installation.gateway_mqtt is not None
            return answers(self.installation.gateway_mqtt)
        return answers(self.web_addresses[self._names("controller").index(name)])

    # -- running

    def keep_parts(self, *, at_start: bool = False) -> None:
        for part in self.parts.values():
            if not self._nodes.is_leaving(part.name):
                part.keep_running(self._say, at_start=at_start)

    def watch(self) -> None:
        """Start again what ended, servers first; follow the number of nodes; look after disks and sessions."""
        alarms = self.brokers.supervise()
        self.keep_parts()
        self._nodes.follow()
        self._tell((*alarms, *self._check_disks(), *self._check_sessions()))

    def _check_disks(self) -> tuple[str, ...]:
        """The brokers' guard acts on what it sees; of other places it is told before they are full."""
        said: tuple[str | None, ...] = ()
        try:
            if self._guard is not None:
                found = self._guard.check()
                said = (found.alarm, found.removed)
        except (BrokerUnavailableError, OSError) as error:
            said = (str(error),)
        places = {"the tables": Path(self.installation.tables), "the state directory": self.state}
        return (*(alarm for alarm in said if alarm is not None), *shortages(places))

    def _check_sessions(self) -> tuple[str, ...]:
        """Before a session that nobody reads fills the brokers' disk."""
        ended = None
        with suppress(BrokerUnavailableError):  # the guard of the disk tells of brokers that do not answer
            ended = None if self._quotas is None else self._quotas.check()
        return () if ended is None else (ended,)

    def _tell(self, alarms: tuple[str, ...]) -> None:
        """Each alarm once, and when there is none any more."""
        for alarm in alarms:
            if alarm not in self._alarms:
                self._say(f"ALARM: {alarm}")
        if self._alarms and not alarms:
            self._say("The alarm is over.")
        if alarms or self._alarms:
            with suppress(BrokerUnavailableError):  # the person at this terminal has read it
                self._quick_bus.put(UP_ALARMS, list(alarms), lease_s=ALARM_LEASE_S)
        self._alarms = alarms

    def stop(self) -> None:
        """Devices first, then what works for them, the brokers last. Safe to call twice, and at any moment."""
        stop_all(list(self.parts.values()), self._say)
        self.parts.clear()
        for bus in self._buses:
            bus.close()
        self._buses.clear()
        for watcher in (self._guard, self._quotas):
            if watcher is not None:
                watcher.close()
        self.brokers.stop()
