"""A token bucket: ``rate_per_s`` tokens a second flow in, at most ``burst`` are kept, and a message takes one.

The bucket is one number, the time e at which it was, or will be, empty. With r the rate and b the burst::

    tokens at t       =  min(b, (t - e) * r)
    taking n          :  e += n / r, from max(e, t - b / r) on

Refill is continuous: no ticks, so nobody is released in step. With U the unfinished work that a queue served at the
rate r would have, a message that arrives when every one before it was let through in order waits for

    max(0, U + 1 - b) / r

The number is in a *cell*, and is read and written under a *lock*; both are handed in. Where processes share them, all
draw from one bucket, and tokens granted in any span of time stay within burst + rate x span. One number is written at
once, so a process that dies leaves no bucket half changed.

A message that has to wait may *reserve*: it takes its tokens at once, even before they are there, and is told from when
on they are its own. Reservations stand in line in the order in which they were made, and nothing is drawn from the
bucket while one stands there; so a place does not depend on whose timer is lucky. A message that leaves the line gives
its tokens back.

*Draughts*. Where it takes thousands of tokens a second, a process draws ``DRAUGHT_S`` worth of them at a time and
spends these without a look at the others; what it has not spent in time goes back before it draws again. A process that
dies with a draught takes at most that along.

Clamps, and why:

* Tokens are at most the burst, without what processes set apart: draughts must not make the bucket larger.
* A draught is at most a share of the burst, divided by the number of processes: the rest is for everybody.
* A draught below ``_DRAUGHT_MIN`` is none: it would save nothing.
* A message that costs more than fits in passes when the bucket is full, because it could never pass otherwise; the debt
  keeps the long-term rate exact.
* A clock that goes back refills nothing and takes nothing away: e stands still.
* Tokens may lack by ``ROUNDING``, once and not per message, because the bucket owes them: time in floating point has
  nothing better to offer.
* A wait is at least ``WAIT_S_MIN``: less would not move a clock that has run for years.
"""

import math
from contextlib import AbstractContextManager
from typing import Protocol

DRAUGHT_S = 0.005
_DRAUGHTS_SHARE = 0.25
_DRAUGHT_MIN = 2.0
ROUNDING = 1e-6
WAIT_S_MIN = 1e-6
# What is in a cell before anything was taken: the bucket was never empty.
FULL = -math.inf


class Cell(Protocol):
    """A sequence of one number."""

    def __getitem__(self, place: int, /) -> float: ...
    def __setitem__(self, place: int, value: float, /) -> None: ...


class TokenBucket:
    """As one process sees it. All processes must say the same rate and burst, and count time on the same clock.

    ``name`` is that of the topics it is for, as an operator wrote them.
    """

    __slots__ = ("_cell", "_draught", "_expires_s", "_lock", "_mine", "_most", "name", "rate_per_s")

    def __init__(
        self,
        cell: Cell,
        lock: AbstractContextManager[object],
        *,
        rate_per_s: float,
        burst: float,
        processes: int = 1,
        name: str = "",
    ) -> None:
        self.name = name
        self._cell = cell
        self._lock = lock
        self.rate_per_s = rate_per_s
        draught = min(rate_per_s * DRAUGHT_S, burst * _DRAUGHTS_SHARE / processes)
        self._draught = draught if draught >= _DRAUGHT_MIN else 0.0
        self._most = burst - self._draught * processes
        self._mine = 0.0
        self._expires_s = 0.0

    def take(self, cost: float, now_s: float) -> bool:
        """Take the tokens if they are there and nobody stands in line for them."""
        if self._mine >= cost and now_s < self._expires_s:
            self._mine -= cost
            return True
        return self._draw(cost, now_s)

    def wait_s(self, cost: float, now_s: float) -> float:
        """How long until ``take`` would succeed if nobody else took anything."""
        if self._mine >= cost and now_s < self._expires_s:
            return 0.0
        available, needed = self._available(now_s, self._mine), min(cost, self._most)
        return 0.0 if available >= needed - ROUNDING else max(WAIT_S_MIN, (needed - available) / self.rate_per_s)

    def reserve(self, cost: float, now_s: float) -> float:
        """Take the tokens and say from when on they are one's own. ``now_s`` may lie before what was said last."""
        with self._lock:
            began_s = max(self._cell[0], now_s - self._most / self.rate_per_s)
            self._cell[0] = began_s + cost / self.rate_per_s
        return max(now_s, began_s + min(cost, self._most) / self.rate_per_s)

    def give_back(self, cost: float) -> None:
        """What was taken or reserved is not used."""
        with self._lock:
            self._cell[0] -= cost / self.rate_per_s

    def _available(self, now_s: float, mine: float) -> float:
        return min(self._most, (now_s - self._cell[0]) * self.rate_per_s + mine)

    def _draw(self, cost: float, now_s: float) -> bool:
        mine, self._mine = self._mine, 0.0
        with self._lock:
            available = self._available(now_s, mine)
            granted = available >= min(cost, self._most) - ROUNDING
            drawn = max(cost, min(self._draught, available)) if granted else 0.0
            if granted or mine:
                self._cell[0] = now_s - (available - drawn) / self.rate_per_s
        if granted:
            self._mine = drawn - cost
            self._expires_s = now_s + DRAUGHT_S
        return granted
