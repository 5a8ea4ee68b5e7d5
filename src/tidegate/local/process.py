"""One process that this one starts, watches and ends, together with everything that it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

STOP_S_MAX = 20.0


class LocalProcess:
    """A command in a process group of its own. It writes to its log, or where this process writes.

    Its own group: a Ctrl-C at the terminal reaches this process only, which then stops what it started in order.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, log: Path | None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = {**os.environ, **(environment or {})}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._log is None:
            self._process = self._open(None)
            return
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = self._open(descriptor)
        finally:
            os.close(descriptor)

    def _open(self, log: int | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
        )

    @property
    def pid(self) -> int | None:
        """None where it is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def is_running(self) -> bool:
        return self.pid is not None

    @property
    def status(self) -> int | None:
        """The status with which it ended; None while it runs, and where it was never started."""
        return None if self._process is None else self._process.poll()

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

    def last_words(self) -> str:
        """The last line of its log, which after a mistake is the sentence that explains it."""
        if self._log is None:
            return "see its message above."
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("tidegate: ") if lines else f"see {self._log}."

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to the process itself, which is what a crash looks like to all others."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        self.signal(signal.SIGTERM)

    def stop(self, seconds_max: float = STOP_S_MAX) -> None:
        """Ask it to stop, wait, and end its whole group where that takes too long."""
        self.ask_to_stop()
        if not self.has_ended(seconds_max):
            self.end_group()

    def has_ended(self, seconds_max: float) -> bool:
        """Whether it ends within the time."""
        if self._process is not None:
            try:
                self._process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                return False
        return True

    def end_group(self) -> None:
        """SIGKILL to it and to what it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
