"""Clients that wait for their turn to be connected: the event loop around ``control.placement.admission``."""

import asyncio
import time
from collections.abc import Callable

from tidegate.control.placement.admission import Admission
from tidegate.gateway.shared.counting import Counters

# True when it is this client's turn; False when it has waited for too long.
Turned = Callable[[bool], None]


class Admitting:
    """A ticket is whatever stands for a client; its owner is called when it is its turn, and says what came of it."""

    def __init__(self, window_max: int, wait_s_max: float, counters: Counters) -> None:
        self._admission: Admission[object] = Admission(window_max, wait_s_max)
        self._waiting: dict[object, Turned] = {}
        self._counters = counters
        self._timer: asyncio.TimerHandle | None = None
        self._due_s: float | None = None
        self._is_going = self._has_more = False

    def ask(self, ticket: object, turned: Turned) -> None:
        """A client wants to be connected. ``turned`` may be called at once."""
        self._waiting[ticket] = turned
        self._admission.ask(ticket, time.monotonic())
        self._go_on()

    def answered(self, ticket: object, took_s: float, ok: bool) -> None:
        """What came of a turn. A client that was not answered has to ask for another one next."""
        self._admission.answered(ticket, took_s, ok, time.monotonic())
        if ok:
            self._go_on()

    def left(self, ticket: object) -> None:
        """The client hung up, wherever it stood; one that stood nowhere changes nothing."""
        self._waiting.pop(ticket, None)
        if self._admission.left(ticket):
            self._go_on()

    def _go_on(self) -> None:
        """Whoever is called here may ask, answer or leave before it returns: that is seen to afterwards."""
        self._has_more = True
        if self._is_going:
            return
        self._is_going = True
        while self._has_more:
            self._has_more = False
            now_s = time.monotonic()
            for ticket in self._admission.ready(now_s):
                self._settle(ticket, True)
            for ticket in self._admission.expired(now_s):
                self._settle(ticket, False)
        self._is_going = False
        self._counters.admitting = self._admission.waiting
        self._wake_at(self._admission.due_s(now_s), now_s)

    def _wake_at(self, due_s: float | None, now_s: float) -> None:
        if due_s == self._due_s and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due_s = due_s
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.001, due_s - now_s), self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._go_on()

    def _settle(self, ticket: object, outcome: bool) -> None:
        turned = self._waiting.pop(ticket, None)
        if turned is not None:
            turned(outcome)
        elif self._admission.left(ticket):
            self._has_more = True  # a turn that nobody takes goes to the next one
