"""The brokers that Tidegate brings along: one to three NATS servers with MQTT and a log, and the control bus.

All of them listen on loopback only. Everything they know (credentials, ports, configuration, data, logs) is in
one state directory that only its owner may read; a second start on the same directory finds it again.
"""

import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from tidegate.brokers.nats.disk_guard import NatsDiskGuard
from tidegate.brokers.nats.ingest import await_login, open_for_traffic
from tidegate.brokers.nats.server_config import (
    CONTROL_USER,
    GATEWAY_USER,
    PIPELINE_USER,
    ServerPorts,
    broker_config,
    control_config,
)
from tidegate.brokers.nats.server_process import Server, server_binary
from tidegate.brokers.nats.session_quotas import NatsSessionQuotas
from tidegate.brokers.nats.state_identity import StateIdentity, settle_identity
from tidegate.brokers.nats.supervising import Supervisor
from tidegate.brokers.sessions import bounds_of
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.client import Bus
from tidegate.bus.installation import FILE_NAME, save_installation
from tidegate.bus.wire import Wire
from tidegate.machine.ports import HOST
from tidegate.machine.private_files import make_private, write_private
from tidegate.machine.spawning import Spawner
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation

READY_S_MAX = 30.0
GUARD_S_MAX = 2.0


class EmbeddedBrokers:
    """Starts, ends and disturbs the servers of one state directory. Use it from one thread."""

    def __init__(self, state_directory: Path, settings: BrokerSettings) -> None:
        self._state = Path(state_directory).absolute()
        self._settings = settings
        self._spawner: Spawner | None = None
        self._brokers: list[Server] = []
        self._control: Server | None = None
        self._lock: int | None = None
        self._supervisors: tuple[Supervisor, ...] = ()
        self.installation: Installation | None = None

    def __enter__(self) -> "EmbeddedBrokers":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- all of it

    def start(self) -> Installation:
        """Everything up, every source active; only then are gateways let in, and told where by the file saved here."""
        if self.installation is not None:
            return self.installation
        server_binary()
        make_private(self._state)
        self._take_lock()
        try:
            identity = settle_identity(self._state, self._settings)
            self._prepare(identity)
            for server in self._all():
                server.start()
            self._wait_ready(self._all())
            installation = self._installation(identity)
            open_installation(installation)
            self._let_gateways_in(identity)
            self.installation = installation
            save_installation(installation, self._state)
            assert self._control is not None
            self._supervisors = (
                Supervisor(self._brokers, lambda: open_brokers(installation)),
                Supervisor([self._control], lambda: open_bus(installation)),
            )
        except BaseException:
            self.stop()
            raise
        return self.installation

    def stop(self) -> None:
        """SIGTERM to all, wait, SIGKILL to whom that does not reach. Safe to call twice."""
        self._supervisors = ()
        servers = self._all()
        for server in servers:
            server.ask_to_stop()
        for server in servers:
            server.stop()
        self._brokers, self._control = [], None
        if self._spawner is not None:
            self._spawner.close()
            self._spawner = None
        if self.installation is not None:
            # Whoever reads the file finds a running installation or a sentence that none runs.
            (self._state / FILE_NAME).unlink(missing_ok=True)
            self.installation = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def supervise(self) -> tuple[str, ...]:
        """Start again what has ended, and have what it serves opened again behind the scenes."""
        now_s = time.monotonic()
        return tuple(alarm for supervisor in self._supervisors for alarm in supervisor.look(now_s))

    # -- disturbances, for tests of what survives them

    def kill_broker(self, index: int) -> None:
        self._broker(index).kill()

    def start_broker(self, index: int, *, wait: bool = True) -> None:
        """Start a node that was killed. Without a majority it cannot become ready: then do not wait."""
        self._broker(index).start()
        if wait:
            self._wait_ready([self._broker(index)])

    def kill_control(self) -> None:
        assert self._control is not None
        self._control.kill()

    def start_control(self) -> None:
        """Start the control bus that was killed."""
        assert self._control is not None
        self._control.start()
        self._wait_ready([self._control])

    def pause_broker(self, index: int) -> None:
        self._broker(index).signal(signal.SIGSTOP)

    def resume_broker(self, index: int) -> None:
        self._broker(index).signal(signal.SIGCONT)

    def kill_all(self) -> None:
        """SIGKILL to every broker at once, as close together as signals go; the control bus stays."""
        for server in self._brokers:
            server.signal(signal.SIGKILL)
        for server in self._brokers:
            server.kill()

    def start_all(self) -> None:
        for server in self._brokers:
            server.start()
        self._wait_ready(self._brokers)

    def pids(self) -> tuple[int, ...]:
        """The processes that run now, brokers first."""
        return tuple(server.pid for server in self._all() if server.pid is not None)

    @property
    def store_directories(self) -> tuple[Path, ...]:
        """Where each broker keeps its data: what a disk guard watches."""
        return tuple(self._state / f"broker-{number + 1}" / "store" for number in range(self._settings.nodes))

    def disk_guard(self) -> NatsDiskGuard:
        assert self.installation is not None
        return NatsDiskGuard(
            # Who calls it has other parts to look after: a broker that hangs may not keep it for long.
            Wire(self.installation.data_urls, name="tidegate-disk-guard", timeout_s=GUARD_S_MAX),
            self.installation.monitor_urls,
            self.store_directories,
            self._settings.disk_bytes_max,
        )

    def session_quotas(self) -> NatsSessionQuotas:
        assert self.installation is not None
        wire = Wire(self.installation.data_urls, name="tidegate-session-quotas", timeout_s=GUARD_S_MAX)
        return NatsSessionQuotas(wire, self.installation.monitor_urls, bounds_of(self._settings))

    # -- parts

    def _all(self) -> list[Server]:
        return [*self._brokers, *([self._control] if self._control is not None else [])]

    def _broker(self, index: int) -> Server:
        if not 0 <= index < len(self._brokers):
            raise UserError(f"There is no broker {index}: {len(self._brokers)} run, counted from 0.")
        return self._brokers[index]

    def _wait_ready(self, servers: Iterable[Server]) -> None:
        deadline = time.monotonic() + READY_S_MAX
        for server in servers:
            server.wait_ready(deadline)

    def _take_lock(self) -> None:
        """Two sets of servers on the same data would destroy it. The kernel frees the lock when we die."""
        self._lock = os.open(self._state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise UserError(
                f"Another Tidegate runs in {self._state}: stop it, or choose another directory with --state."
            ) from None

    def _prepare(self, identity: StateIdentity) -> None:
        """Configuration files, and the servers that will read them."""
        spawner = self._spawner = Spawner()

        def server(name: str, text: str, ports: ServerPorts, *, cluster_size: int = 1) -> Server:
            config = self._state / name / "nats.conf"
            write_private(config, text.encode())
            return Server(name, config, self._state / f"{name}.log", ports.monitor, spawner, cluster_size=cluster_size)

        for index, ports in enumerate(identity.brokers):
            store = self.store_directories[index]
            make_private(store)
            text = self._broker_config(identity, index, gateways_allowed=False)
            self._brokers.append(server(store.parent.name, text, ports, cluster_size=identity.nodes))
        store = self._state / "control" / "store"
        make_private(store)
        text = control_config(identity.control, identity.passwords, self._settings, str(store))
        self._control = server("control", text, identity.control)

    def _broker_config(self, identity: StateIdentity, index: int, *, gateways_allowed: bool) -> str:
        store = str(self.store_directories[index])
        passwords = identity.passwords
        return broker_config(
            index, identity.brokers, passwords, self._settings, store, gateways_allowed=gateways_allowed
        )

    def _let_gateways_in(self, identity: StateIdentity) -> None:
        for index, server in enumerate(self._brokers):
            write_private(server.config, self._broker_config(identity, index, gateways_allowed=True).encode())
            server.signal(signal.SIGHUP)
        deadline = time.monotonic() + READY_S_MAX
        for ports in identity.brokers:
            await_login([(HOST, ports.mqtt)], [(GATEWAY_USER, identity.passwords.gateway)], deadline)

    def _installation(self, identity: StateIdentity) -> Installation:
        passwords = identity.passwords
        return Installation(
            control_urls=(f"nats://{CONTROL_USER}:{passwords.control}@{HOST}:{identity.control.client}",),
            data_urls=tuple(
                f"nats://{PIPELINE_USER}:{passwords.pipeline}@{HOST}:{ports.client}" for ports in identity.brokers
            ),
            mqtt_addresses=tuple((HOST, ports.mqtt) for ports in identity.brokers),
            monitor_urls=tuple(f"http://{HOST}:{ports.monitor}" for ports in identity.brokers),
            mqtt_user=GATEWAY_USER,
            mqtt_password=passwords.gateway,
            slices=identity.slices,
            tables=str(self._state / "tables"),
        )


def open_installation(installation: Installation) -> None:
    """From running servers to an installation that may take readings: documents, slices, every source active."""
    open_bus(installation)
    open_brokers(installation)


def open_bus(installation: Installation) -> None:
    with Bus(installation.control_urls, name="tidegate-opening") as bus:
        bus.create()


def open_brokers(installation: Installation) -> None:
    with Wire(installation.data_urls, name="tidegate-opening") as data:
        open_for_traffic(data, installation)
