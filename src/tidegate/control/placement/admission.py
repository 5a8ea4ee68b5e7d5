"""Whose turn it is to be connected to a broker, when very many come at once.

A broker that is back is asked by everybody at the same moment; asked too much it answers nobody in time, all try again,
and it never comes back. So clients wait here, first come, first served, and only a *window* of them is being connected
at a time. With took the time that an answer took and best the shortest one, which is forgotten slowly::

    good answer:                                                window += 1 / window
    slow (took > SLOW_FACTOR * best, and > SLOW_S_MIN) or none: window *= SHRINK, once for all that were under way

Regimes. *calm*: fewer ask than fit into the window, nobody waits. *storm*: the window grows by one per window of good
answers, until the broker is so busy that answers take several times as long: then it is at its limit, and more at once
would only wait there. *nobody answers*: nothing was answered since somebody began to ask in vain. Then one client at a
time tries, after pauses that grow to ``PAUSE_S_MAX``, and the window begins anew with the first answer.

Clamps. The window stays within 1 and ``window_max``. Answers within ``SLOW_S_MIN`` are good ones whatever the best was:
that much is the gateway's own noise.

No client is refused for trying again. One that was not answered keeps the place in line that it had; one that hangs up
gives its place away at once. One that has waited for ``wait_s_max`` is handed out by ``expired``, to be told that it is
not served.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

WINDOW_START = 16.0
SLOW_FACTOR = 4.0
SLOW_S_MIN = 0.02
SHRINK = 0.7
BEST_GROWS = 1.0002  # per answer: a best that is never seen again is forgotten in some thousand of them
PAUSE_S_MIN = 0.02
PAUSE_S_MAX = 0.1

TicketT = TypeVar("TicketT", bound=Hashable)


class _Place:
    __slots__ = ("asked_s", "began_s", "number")

    def __init__(self, number: int, asked_s: float) -> None:
        self.number, self.asked_s, self.began_s = number, asked_s, 0.0


class Admission(Generic[TicketT]):
    """A ticket is anything that stands for one client's wish to be connected."""

    def __init__(self, window_max: int, wait_s_max: float) -> None:
        self._window_max, self._wait_s_max = float(window_max), wait_s_max
        self._line: OrderedDict[TicketT, _Place] = OrderedDict()
        self._again: dict[TicketT, _Place] = {}  # who was not answered: before all others, and no more than a window
        self._begun: dict[TicketT, _Place] = {}
        self._number = 0
        self._best_s = math.inf
        self._shrunk_s = self._answered_s = -math.inf
        self._pause_s = 0.0  # 0 while brokers answer
        self._probe_s = -math.inf
        self.window = min(WINDOW_START, self._window_max)

    @property
    def waiting(self) -> int:
        """Clients that wait for their turn."""
        return len(self._line) + len(self._again)

    @property
    def connecting(self) -> int:
        """Clients whose turn it is."""
        return len(self._begun)

    def ask(self, ticket: TicketT, now_s: float) -> None:
        """A client wants to be connected. Call ``ready`` next."""
        if ticket not in self._line and ticket not in self._again and ticket not in self._begun:
            self._number += 1
            self._line[ticket] = _Place(self._number, now_s)

    def ready(self, now_s: float) -> list[TicketT]:
        """Whose turn it is now. Ask again after an answer, when somebody left, and when it is due."""
        turns: list[TicketT] = []
        while self._has_room(now_s) and (first := self._first()) is not None:
            ticket, place = first
            self._leave_line(ticket)
            place.began_s = now_s
            self._begun[ticket] = place
            turns.append(ticket)
        return turns

    def answered(self, ticket: TicketT, took_s: float, ok: bool, now_s: float) -> None:
        """A broker answered the client, be it with a refusal; or, where not ``ok``, none did: it waits again."""
        place = self._begun.pop(ticket, None)
        if place is None:  # it left meanwhile
            return
        if ok:
            self._heard(took_s, place.began_s, now_s)
        else:
            self._again[ticket] = place
            self._not_heard(place.began_s, now_s)

    def left(self, ticket: TicketT) -> bool:
        """The client hung up, or does not want to be connected any more. Whether it had a place."""
        return self._begun.pop(ticket, None) is not None or self._leave_line(ticket)

    def expired(self, now_s: float) -> list[TicketT]:
        """The clients that have waited for too long; they are out of the line."""
        over: list[TicketT] = []
        while (first := self._first()) is not None and now_s >= first[1].asked_s + self._wait_s_max:
            self._leave_line(first[0])
            over.append(first[0])
        return over

    def due_s(self, now_s: float) -> float | None:
        """When to call ``ready`` and ``expired`` again even if nothing happens; None where nobody waits."""
        first = self._first()
        if first is None:
            return None
        expires_s = first[1].asked_s + self._wait_s_max
        probes = self._pause_s > 0 and not self._begun
        return max(now_s, min(expires_s, self._probe_s) if probes else expires_s)

    def _first(self) -> tuple[TicketT, _Place] | None:
        if self._again:
            return min(self._again.items(), key=lambda item: item[1].number)
        return next(iter(self._line.items()), None)

    def _leave_line(self, ticket: TicketT) -> bool:
        return self._again.pop(ticket, None) is not None or self._line.pop(ticket, None) is not None

    def _has_room(self, now_s: float) -> bool:
        if self._pause_s > 0:
            return not self._begun and now_s >= self._probe_s
        return len(self._begun) < int(self.window)

    def _heard(self, took_s: float, began_s: float, now_s: float) -> None:
        self._answered_s = now_s
        if self._pause_s > 0:
            self._pause_s, self._best_s = 0.0, math.inf
            self.window = min(WINDOW_START, self._window_max)
        self._best_s = min(took_s, self._best_s * BEST_GROWS)
        if took_s > max(SLOW_S_MIN, SLOW_FACTOR * self._best_s):
            self._shrink(began_s, now_s)
        else:
            self.window = min(self._window_max, self.window + 1.0 / self.window)

    def _not_heard(self, began_s: float, now_s: float) -> None:
        if self._answered_s >= began_s:
            self._shrink(began_s, now_s)
        elif began_s >= self._probe_s:
            # One that began before the last probe was due says nothing that is not known already.
            self._pause_s = min(PAUSE_S_MAX, 2 * self._pause_s) if self._pause_s else PAUSE_S_MIN
            self._probe_s = now_s + self._pause_s

    def _shrink(self, began_s: float, now_s: float) -> None:
        if began_s > self._shrunk_s:
            self.window, self._shrunk_s = max(1.0, self.window * SHRINK), now_s
