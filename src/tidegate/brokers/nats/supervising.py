"""The servers looked after while they should run: started again when they end, watched when they do not answer.

Nothing here waits: health pages are asked, and streams are opened for traffic again, by threads that nobody joins.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tidegate.brokers.nats.recovery import Recovery
from tidegate.brokers.nats.server_process import Server
from tidegate.model.errors import TidegateError

Answer = TypeVar("Answer")


class _Asked(Generic[Answer]):
    """A question in a thread of its own, one at a time: who hangs is asked again only when it has answered."""

    def __init__(self, question: Callable[[], Answer]) -> None:
        self._question = question
        self._thread: threading.Thread | None = None
        self._answers: list[Answer] = []

    def answer(self) -> Answer | None:
        """What was answered since the last look; None where nothing was."""
        return self._answers.pop() if self._answers else None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def ask(self) -> None:
        if not self.is_busy:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        self._answers.append(self._question())


class Supervisor:
    """``reopen`` makes what was restarted serve as before; it may take long, and raises where it did not work."""

    def __init__(self, servers: Sequence[Server], reopen: Callable[[], None]) -> None:
        self._reopen = reopen
        self._watched = [(server, Recovery(server.name), _Asked(server.problem)) for server in servers]
        self._to_reopen = False
        self._reopening: _Asked[str] = _Asked(self._reopened)
        self._not_reopened: str | None = None

    def look(self, now_s: float) -> tuple[str, ...]:
        """Start what has ended and is due; a sentence for each server that is not well."""
        for server, recovery, health in self._watched:
            problem = health.answer()
            if server.pid is not None:
                if problem is not None:
                    recovery.up(now_s, problem or None)
                health.ask()
            elif recovery.down(now_s, server.last_words()):
                self._start(server, recovery, now_s)
        self._open_again()
        alarms = (*(recovery.alarm for _, recovery, _ in self._watched), self._not_reopened)
        return tuple(alarm for alarm in alarms if alarm is not None)

    def _start(self, server: Server, recovery: Recovery, now_s: float) -> None:
        try:
            server.start()
        except (TidegateError, OSError) as error:
            recovery.not_started(now_s, f"it cannot be started ({error}).")
        else:
            recovery.started(now_s)
            self._to_reopen = True

    def _open_again(self) -> None:
        """After each restart, until it has worked."""
        failure = self._reopening.answer()
        if failure is not None:
            self._not_reopened = failure or None
            self._to_reopen = self._to_reopen or bool(failure)
        if self._to_reopen and not self._reopening.is_busy:
            self._to_reopen = False
            self._reopening.ask()

    def _reopened(self) -> str:
        """Empty where it worked, else why not."""
        try:
            self._reopen()
        except TidegateError as error:
            return str(error)
        return ""
