"""An installation of a benchmark's own, with nodes and loads as separate processes."""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import PROGRESS
from tidegate.devices.acknowledgements import read_directory
from tidegate.local.waiting import wait_until
from tidegate.model.errors import BrokerUnavailableError, TidegateError
from tidegate.model.progress import NodeProgress
from tidegate.pipeline.tables.ledger import LedgerVerdict, check, read_identities
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.nodes import NodeProcess

LOOK_S = 0.05


class Rig:
    """Brokers, nodes and loads in one directory that goes away with them."""

    def __init__(self, brokers: BrokerSettings, keep: Path | None = None) -> None:
        self.state = keep if keep is not None else Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
        self._keep = keep is not None
        self.brokers = EmbeddedBrokers(self.state, brokers)
        self.nodes: dict[str, NodeProcess] = {}
        self._loads: list[Child] = []

    def __enter__(self) -> "Rig":
        try:
            self.installation = self.brokers.start()
        except BaseException:
            self.close()
            raise
        self.bus = Bus(self.installation.control_urls, name="bench")
        self.assignments = Assignments(self.bus, self.installation.slices)
        return self

    def __exit__(self, *_: object) -> None:
        self.bus.close()
        self.close()

    def close(self) -> None:
        for load in self._loads:
            load.kill()
        for node in self.nodes.values():
            node.stop()
        self.brokers.stop()
        if not self._keep:
            shutil.rmtree(self.state, ignore_errors=True)

    # -- nodes

    def start_node(self, name: str, **settings: str) -> NodeProcess:
        self.nodes[name] = NodeProcess(name, self.state, settings)
        return self.nodes[name]

    def progress(self, name: str) -> NodeProgress | None:
        return self.bus.get(PROGRESS, name)

    def has_progress(self, name: str) -> bool:
        said = self.progress(name)
        return said is not None and bool(said.query)

    def wait(self, purpose: str, condition: Callable[[], bool], timeout_s: float = 90.0) -> float:
        """Wait until the condition holds; how long that took. Interruptions of a broker are part of the wait."""
        started_s = time.monotonic()

        def holds() -> bool:
            with contextlib.suppress(BrokerUnavailableError):
                if condition():
                    return True
            self._require_nodes()
            return False

        if not wait_until(holds, timeout_s, LOOK_S):
            raise TidegateError(f"Waited {timeout_s:.0f} s for {purpose} in vain: see the logs in {self.state}.")
        return time.monotonic() - started_s

    def _require_nodes(self) -> None:
        """A node that a benchmark killed is expected to be gone; one that ended by itself is not."""
        for node in self.nodes.values():
            if node.status not in (None, -signal.SIGKILL):
                raise TidegateError(f"Node {node.name} ended by itself: {node.last_words()}")

    # -- loads

    def start_load(self, acks: str, **options: float | str) -> Child:
        """Steady readings; ``last_answer`` of it is the summary. ``acks`` is the name of its directory."""
        load = Child(
            "rig.steady_load",
            "--json",
            log=self.state / "load.log",
            state=self.state,
            acks=self.state / "acks" / acks,
            **options,
        )
        self._loads.append(load)
        return load

    def ledger(self) -> LedgerVerdict:
        return check(read_directory(self.state / "acks"), read_identities(Path(self.installation.tables)))
