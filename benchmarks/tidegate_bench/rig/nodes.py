"""A processing node under test, and the processes of which it consists."""

import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil

from tidegate.local.parts import Part
from tidegate.local.process import STOP_S_MAX
from tidegate_bench.rig import processes


class NodeProcess(Part):
    """A ``tidegate node`` and everything it started. ``settings`` are those of its section, by name."""

    def __init__(self, name: str, state: Path, settings: Mapping[str, str]) -> None:
        environment = {f"TIDEGATE_NODE__{key.upper()}": value for key, value in settings.items()}
        super().__init__(name, ["node", "--name", name, "--state", str(state)], environment, state / f"{name}.log")
        self.start()

    def family(self) -> list[psutil.Process]:
        """The node's Python, its JVM, its planner and its workers; empty where it has ended."""
        return [] if self.pid is None else processes.family(self.pid)

    def workers(self) -> list[psutil.Process]:
        """The Python processes below Spark: they read, parse and write."""
        return self._members("worker")

    def planners(self) -> list[psutil.Process]:
        return [p for p in self.family()[1:] if "pyspark.sql.streaming.python_streaming_source_runner" in _command(p)]

    def jvms(self) -> list[psutil.Process]:
        return self._members("JVM")

    def _members(self, kind: str) -> list[psutil.Process]:
        return [member for member in self.family()[1:] if kind_of(member) == kind]

    def signal_all(self, number: int) -> None:
        for member in self.family():
            _send(member, number)

    def stop(self, seconds_max: float = STOP_S_MAX) -> None:
        self.signal_all(signal.SIGCONT)
        super().stop(seconds_max)

    def end_group(self) -> None:
        # Spark's workers have a group of their own.
        self.signal_all(signal.SIGKILL)
        super().end_group()


def kind_of(process: psutil.Process) -> str:
    """What a process below a node's first one is: "JVM", "planner", "worker" (or what starts those), or "other"."""
    command = _command(process)
    if Path(command[0] if command else "").name == "java":
        return "JVM"
    if "pyspark.sql.streaming.python_streaming_source_runner" in command:
        return "planner"
    return "worker" if "pyspark.worker" in command[-1:] else "other"


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _send(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
