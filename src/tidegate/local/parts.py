"""One part of the installation: started, started again when it ends by itself, stopped in good order."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tidegate.local.process import STOP_S_MAX, LocalProcess
from tidegate.model.errors import TidegateError

RESTART_S = 2.0
TELL_S = 1.8
BAD_INPUT = 2

Say = Callable[[str], None]


class Part(LocalProcess):
    """``tidegate <arguments>`` as a process, which ends when this one does."""

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None) -> None:
        command = [sys.executable, "-m", "tidegate.cli.main", *arguments, "--ends-with-parent"]
        super().__init__(name, command, log=log, environment=environment)
        self._not_before_s = 0.0

    def keep_running(self, say: Say, *, at_start: bool = False) -> None:
        """Start it again if it has ended, after a moment. At the installation's start a mistake in its settings is not
        tried twice; later on it stops nobody else, and is said each time."""
        status = self.status
        if status is not None:
            if status == BAD_INPUT and at_start:
                raise TidegateError(f"{self.name} cannot start: {self.last_words()}")
            why = f" ({self.last_words().rstrip('.')})" if status == BAD_INPUT else ""
            say(f"{self.name} ended with status {status}{why}; it is started again.")
            self._process = None
            self._not_before_s = time.monotonic() + RESTART_S
        if self._process is None and time.monotonic() >= self._not_before_s:
            self.start()

    def await_end(self, deadline_s: float, say: Say) -> None:
        """Wait for it to end, until the deadline of the monotonic clock; then end its whole group."""
        while self.is_running:
            if not self.has_ended(TELL_S):
                say(f"  Waiting for {self.name} to stop.")
            if time.monotonic() > deadline_s:
                self.end_group()
        self._process = None


def stop_all(parts: Sequence[Part], say: Say) -> None:
    for part in parts:
        part.ask_to_stop()
    deadline_s = time.monotonic() + STOP_S_MAX
    for part in parts:
        part.await_end(deadline_s, say)
        say(f"  {part.name} has stopped.")
