"""The installation under faults: what ``tidegate up`` runs, on small disks and with clocks that can be set."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.local.chain import Chain
from tidegate.local.parts import Part
from tidegate.model.errors import TidegateError
from tidegate.report.progress import Progress
from tidegate.settings.tree import Settings, load
from tidegate_bench.crashes import devices
from tidegate_bench.crashes.alarms import Ears
from tidegate_bench.crashes.clocks import Clocks
from tidegate_bench.crashes.schedule import BROKERS, NODES
from tidegate_bench.crashes.stored import StoredTables
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.toml import to_toml

SLICES = 8
WINDOW_S = 10
# The maintainer keeps half a GiB free before it merges.
TABLES_MIB = 768
WATCH_S = 0.5
GONE_S_MAX = 10.0
READY_TRIES = 3
CONTROL = "control"
# Everything that happens now and then happens often, so that faults meet it.
ENVIRONMENT = {
    "TIDEGATE_NODE__LEASE_S": "2",
    "TIDEGATE_NODE__SNAPSHOT_S": "2",
    "TIDEGATE_NODE__PURGE_S": "3",
    "TIDEGATE_NODE__WINDOW_S": str(WINDOW_S),
    "TIDEGATE_NODE__HEAP_MIB": "512",
    # Nobody is held: what is to be seen is what becomes of readings.
    "TIDEGATE_CONTROLLER__POLICY": "none",
    "TIDEGATE_IDENTITY__APPLICATIONS": to_toml(devices.applications()),
    "TIDEGATE_MAINTENANCE__EVERY_S": "3",
    "TIDEGATE_MAINTENANCE__SHARE": "1",
    "TIDEGATE_MAINTENANCE__LEASE_S": "5",
    "TIDEGATE_MAINTENANCE__MERGE_FILES_MIN": "4",
    "TIDEGATE_MAINTENANCE__LOG_RETENTION_S": "60",
    "TIDEGATE_MAINTENANCE__VACUUM_EVERY_S": "10",
}


class SteppingChain(Chain):
    """Each part has a clock of its own."""

    def __init__(self, state: Path, settings: Settings, ears: "Sayings", clocks: Clocks) -> None:
        super().__init__(state, settings, ears, nodes=len(NODES), environment=ENVIRONMENT, logs=True)
        self._clocks = clocks

    def _add(self, name: str, command: str, *options: str) -> None:
        kept = self._environment
        self._environment = {**kept, **self._clocks.environment(name)}
        try:
            super()._add(name, command, *options)
        finally:
            self._environment = kept


class Sayings:
    """What ``tidegate up`` would print: kept in a file, and heard."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ears: Ears | None = None

    def __call__(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        if self.ears is not None:
            self.ears.hear("up", line)


class Site:
    """A running installation and its devices. ``hold`` keeps those who look after it from doing so for a moment."""

    def __init__(self, state: Path, seed: str, progress: Progress) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self.state = state
        self._seed, self._progress = seed, progress
        self._opened = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self.broken: str | None = None  # why nobody looks after it any more

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def _start(self) -> None:
        self.tables_disk = self._opened.enter_context(small_disk(self.state / "tables"))
        self.clocks = Clocks(self.state / "clocks")
        sayings = Sayings(self.state / "up.log")
        settings = load(None, {**ENVIRONMENT})
        settings = Settings(
            broker=BrokerSettings(nodes=len(BROKERS), slices=SLICES),
            node=settings.node,
            maintenance=settings.maintenance,
        )
        self.chain = self._opened.enter_context(SteppingChain(self.state, settings, sayings, self.clocks))
        self._opened.callback(self.wake_all)
        self._progress.step("Starting three brokers, two nodes and all other parts.")
        installation = self.chain.start_brokers()
        self.chain.start_parts()
        self._await_ready()
        self.ears = sayings.ears = Ears(installation, NODES)
        self.ears.start()
        self._opened.callback(self.ears.stop)
        self.stored = StoredTables(Path(installation.tables), SLICES)
        self.records = self.state / "devices.records"
        self.devices = self._opened.enter_context(
            Child(
                "crashes.devices",
                log=self.state / "devices.log",
                state=self.state,
                records=self.records,
                seed=self._seed,
            )
        )
        watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        watcher.start()
        self._opened.callback(watcher.join, 30.0)
        self._opened.callback(self._ending.set)

    def _await_ready(self) -> None:
        """Two JVMs at once take long on a busy machine, which is no fault of theirs."""
        for attempt in range(READY_TRIES):
            try:
                for name in self.chain.ready():
                    self._progress.update(f"{name} is ready" if name else "Waiting for the parts")
            except TidegateError:
                if attempt + 1 == READY_TRIES:
                    raise
            else:
                return

    def _watch(self) -> None:
        """What ``tidegate up`` does; where that would end, nobody looks after the parts any more."""
        while not self._ending.wait(WATCH_S):
            try:
                with self._lock:
                    self.chain.watch()
            except TidegateError as error:
                self.broken = str(error)
                return

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Nothing is started again within the block."""
        with self._lock:
            yield

    # -- processes

    def part(self, name: str) -> Part:
        return self.chain.parts[name]

    def server(self, name: str) -> psutil.Process | None:
        """A broker, or the control bus, by its configuration; None where it does not run."""
        config = str(self.state / name / "nats.conf")
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if config in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                    return child
        return None

    def end_server(self, name: str) -> None:
        """SIGKILL, and wait until it is gone. Hold the site: it is started again as soon as somebody looks."""
        server = self.server(name)
        if server is not None:
            server.kill()
            deadline_s = time.monotonic() + GONE_S_MAX
            while self.server(name) is not None and time.monotonic() < deadline_s:
                time.sleep(0.01)

    def store(self, name: str) -> Path:
        return self.state / name / "store"

    def wake_all(self) -> None:
        """Nobody stays frozen, whatever happened to who froze it."""
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.send_signal(signal.SIGCONT)

    # -- slices

    def owner(self, slice_: int) -> str | None:
        with Bus(self.chain.installation.control_urls, name="bench") as bus:
            return Assignments(bus, SLICES).current().ownerships[slice_].owner

    def move(self, slice_: int, taker: str) -> str | None:
        """Ask for a move; why it was refused."""
        with Bus(self.chain.installation.control_urls, name="bench") as bus:
            return Assignments(bus, SLICES).move(slice_, taker)

    def spread(self) -> None:
        """Half of the slices to each node: whoever is hit next has something to lose."""
        with Bus(self.chain.installation.control_urls, name="bench") as bus, contextlib.suppress(TidegateError):
            assignments = Assignments(bus, SLICES)
            holds = assignments.current().ownerships
            assignments.move_all({s: NODES[s % 2] for s, hold in enumerate(holds) if hold.owner != NODES[s % 2]})

    def refused_commits(self) -> int:
        """How often a table refused a commit because the slice had gone to another node."""
        logs = [self.state / "logs" / f"{name}.log" for name in NODES]
        return sum(log.read_text(errors="replace").count("another node has it now") for log in logs if log.exists())


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """A disk of its own for the directory, where that may be mounted; whether it was."""
    directory.mkdir(parents=True, exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={TABLES_MIB}m", "tmpfs", str(directory)]
    mounted = bool(shutil.which("mount")) and subprocess.run(mounting, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)
