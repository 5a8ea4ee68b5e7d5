"""One process of the installation: started, started again when it ends by itself, stopped in good order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tidegate.model.errors import TidegateError

RESTART_S = 2.0
STOP_S_MAX = 20.0
TELL_S = 1.8
BAD_INPUT = 2

Say = Callable[[str], None]


class Part:
    """``tidegate <arguments>`` as a process. It writes to a log of its own, or to this process's standard error."""

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None) -> None:
        self.name = name
        self._command = [sys.executable, "-m", "tidegate.cli.main", *arguments, "--ends-with-parent"]
        self._environment = {**os.environ, **environment}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before_s = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        # Its own group: a Ctrl-C at the terminal reaches this process, which then stops its parts in order.
        if self._log is None:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, process_group=0
            )
            return
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                process_group=0,
            )
        finally:
            os.close(descriptor)

    def keep_running(self, say: Say) -> None:
        """Start it again if it has ended, after a moment; a mistake in its settings is not tried twice."""
        status = None if self._process is None else self._process.poll()
        if status is not None:
            if status == BAD_INPUT:
                raise TidegateError(f"{self.name} cannot start: {self.last_words()}")
            say(f"{self.name} ended with status {status}; it is started again.")
            self._process = None
            self._not_before_s = time.monotonic() + RESTART_S
        if self._process is None and time.monotonic() >= self._not_before_s:
            self.start()

    def last_words(self) -> str:
        """The last line of its log, which for a mistake is the sentence that explains it."""
        if self._log is None:
            return "see its message above."
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("tidegate: ") if lines else f"see {self._log}."

    def kill(self) -> None:
        """SIGKILL to the process itself: what a crash looks like to everybody else."""
        if self.pid is not None:
            assert self._process is not None
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        if self.pid is not None:
            assert self._process is not None
            self._process.terminate()

    def stop(self, deadline_s: float, say: Say) -> None:
        """Wait for it to end, until the deadline of the monotonic clock; then end its whole group."""
        process = self._process
        while process is not None and process.poll() is None:
            try:
                process.wait(TELL_S)
            except subprocess.TimeoutExpired:
                say(f"  Waiting for {self.name} to stop.")
            if time.monotonic() > deadline_s:
                self.end_group()
        self._process = None

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left: a JVM outlives the process that started it for a moment."""
        if self._process is None:
            return True
        if self._process.poll() is None:
            return False
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def end_group(self) -> None:
        """SIGKILL to it and to what it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def stop_all(parts: Sequence[Part], say: Say) -> None:
    for part in parts:
        part.ask_to_stop()
    deadline_s = time.monotonic() + STOP_S_MAX
    for part in parts:
        part.stop(deadline_s, say)
        say(f"  {part.name} has stopped.")
