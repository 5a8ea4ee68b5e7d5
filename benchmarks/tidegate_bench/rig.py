"""What the benchmarks stand on: an installation of its own, nodes and fleets as separate processes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.assignments import Assignments
from tidegate.bus.knowledge import Knowledge
from tidegate.bus.wire import Wire
from tidegate.devices.acknowledgements import read_directory
from tidegate.model.errors import BrokerUnavailableError, TidegateError
from tidegate.pipeline.tables.ledger import LedgerVerdict, check, read_identities


class NodeProcess:
    """A ``tidegate node`` and everything it started."""

    def __init__(self, name: str, state: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._log = (state / f"{name}.log").open("ab")
        command = [sys.executable, "-m", "tidegate.cli.main", "node", "--name", name, "--state", str(state)]
        settings = {f"TIDEGATE_NODE__{key.upper()}": value for key, value in environment.items()}
        self.process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL
        )

    def family(self) -> list[psutil.Process]:
        """The node's Python, its JVM, its planner and its workers."""
        try:
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def workers(self) -> list[psutil.Process]:
        """The Python processes below Spark: they read, parse and write."""
        return [member for member in self.family()[1:] if "pyspark.worker" in _command(member)[-1:]]

    def planners(self) -> list[psutil.Process]:
        return [p for p in self.family()[1:] if "pyspark.sql.streaming.python_streaming_source_runner" in _command(p)]

    def jvms(self) -> list[psutil.Process]:
        return [p for p in self.family()[1:] if Path(_command(p)[0] if _command(p) else "").name == "java"]

    def signal_all(self, number: int) -> None:
        for member in self.family():
            _send(member, number)

    def kill(self) -> None:
        """SIGKILL to the driver; what it started must notice by itself."""
        self.process.kill()
        self.process.wait()
        self._log.close()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.signal_all(signal.SIGCONT)
            family = self.family()
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                for member in family:
                    _send(member, signal.SIGKILL)
        self._log.close()


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _send(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


class Rig:
    """Brokers, nodes and fleets in one directory that goes away with them."""

    def __init__(self, brokers: BrokerSettings, keep: Path | None = None) -> None:
        self.state = keep if keep is not None else Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
        self._keep = keep is not None
        self.brokers = EmbeddedBrokers(self.state, brokers)
        self.nodes: dict[str, NodeProcess] = {}
        self._fleets: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Rig":
        try:
            self.installation = self.brokers.start()
        except BaseException:
            self.close()
            raise
        self._control = Wire(self.installation.control_urls, name="bench")
        self.assignments = Assignments(Knowledge(self._control), self.installation.slices)
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self.close()

    def close(self) -> None:
        for fleet in self._fleets:
            if fleet.poll() is None:
                fleet.kill()
                fleet.wait()
        for node in self.nodes.values():
            node.stop()
        self.brokers.stop()
        if not self._keep:
            shutil.rmtree(self.state, ignore_errors=True)

    # -- nodes

    def start_node(self, name: str, **settings: str) -> NodeProcess:
        self.nodes[name] = NodeProcess(name, self.state, settings)
        return self.nodes[name]

    def progress(self, name: str) -> dict[str, Any]:
        document = self.assignments.progress(name)
        return json.loads(document) if document else {}

    def has_progress(self, name: str) -> bool:
        return bool(self.progress(name).get("query"))

    def wait(self, purpose: str, condition: Callable[[], bool], timeout_s: float = 90.0) -> float:
        """Wait until the condition holds; how long that took. Interruptions of a broker are part of the wait."""
        started = time.monotonic()
        while time.monotonic() - started < timeout_s:
            try:
                if condition():
                    return time.monotonic() - started
            except BrokerUnavailableError:
                pass
            for node in self.nodes.values():
                if node.process.poll() not in (None, -9):
                    log = (self.state / f"{node.name}.log").read_text(errors="replace").strip().splitlines()
                    raise TidegateError(f"Node {node.name} ended by itself: {log[-1] if log else 'no word'}")
            time.sleep(0.05)
        raise TidegateError(f"Waited {timeout_s:.0f} s for {purpose} in vain: see the logs in {self.state}.")

    # -- fleets

    def start_fleet(self, acks: str, **options: float | str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tidegate.devices.fleet", "--state", str(self.state), "--json"]
        command += ["--acks", str(self.state / "acks" / acks)]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        fleet = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._fleets.append(fleet)
        return fleet

    @staticmethod
    def finish_fleet(fleet: subprocess.Popen[bytes], timeout_s: float = 180.0) -> dict[str, Any]:
        output, _ = fleet.communicate(timeout=timeout_s)
        lines = output.decode().strip().splitlines()
        if not lines:
            raise TidegateError(f"The fleet ended with status {fleet.returncode} and said nothing.")
        summary: dict[str, Any] = json.loads(lines[-1])
        return summary

    def ledger(self) -> LedgerVerdict:
        return check(read_directory(self.state / "acks"), read_identities(Path(self.installation.tables)))
