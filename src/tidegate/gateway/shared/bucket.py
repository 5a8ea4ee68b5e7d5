"""One bucket of tokens that all processes of a gateway draw from: what is granted never exceeds burst + rate x time.

The bucket is one number: the time at which it was, or will be, empty. Tokens are the time since then, times the rate,
and at most the burst. One number is written at once, so a process that dies leaves no bucket half changed; the kernel
takes its lock away.

Where it takes thousands of tokens a second a process draws a few milliseconds' worth at a time and spends these
without a look at the others; what it has not spent in time goes back before it draws again. Draughts are set apart from
the burst, which is why they cannot make it larger: tokens granted in any span of time stay within burst + rate x span.
A process that dies with a draught takes at most that along.
"""

import math

from tidegate.gateway.shared.locks import ByteLock

DRAUGHT_S = 0.005
# A process may set apart for itself at most this share of the burst, divided by the number of processes.
_DRAUGHTS_SHARE = 0.25
# Below this a draught saves nothing.
_DRAUGHT_MIN = 2.0
# Tokens may lack by this much, which is owed: time in floating point has no better to offer.
_ROUNDING = 1e-6
# What is in the memory before anybody has taken anything: it was never empty.
FULL = -math.inf


class SharedBucket:
    """As one process sees it. All processes must say the same rate and burst; times are of the monotonic clock."""

    def __init__(
        self,
        cell: "memoryview[float]",
        lock: ByteLock,
        *,
        rate_per_s: float,
        burst: float,
        processes: int = 1,
        name: str = "",
    ) -> None:
        self.name = name
        self._cell = cell
        self._lock = lock
        self._rate_per_s = rate_per_s
        draught = min(rate_per_s * DRAUGHT_S, burst * _DRAUGHTS_SHARE / processes)
        self._draught = draught if draught >= _DRAUGHT_MIN else 0.0
        self._most = burst - self._draught * processes
        self._mine = 0.0
        self._expires_s = 0.0

    def take(self, n: float, now_s: float) -> bool:
        """Whether n tokens were there; then they are gone. More than fit in are granted when it is full."""
        if self._mine >= n and now_s < self._expires_s:
            self._mine -= n
            return True
        return self._draw(n, now_s)

    def wait_s(self, n: float, now_s: float) -> float:
        """How long until n tokens are there, if nobody else takes any."""
        needed = min(n, self._most) - self._available(now_s) - self._mine
        return max(0.0, needed / self._rate_per_s)

    def reserve(self, n: float, now_s: float) -> float:
        """Take n tokens, there or not: the time from which on they may be spent. First come, first served."""
        with self._lock:
            began_s = max(self._cell[0], now_s - self._most / self._rate_per_s)
            self._cell[0] = began_s + n / self._rate_per_s
        return max(now_s, began_s + min(n, self._most) / self._rate_per_s)

    def give_back(self, n: float) -> None:
        """Tokens that were taken or reserved, and will not be spent."""
        with self._lock:
            self._cell[0] -= n / self._rate_per_s

    def _available(self, now_s: float) -> float:
        return min(self._most, (now_s - self._cell[0]) * self._rate_per_s)

    def _draw(self, n: float, now_s: float) -> bool:
        mine, self._mine = self._mine, 0.0
        with self._lock:
            available = min(self._most, self._available(now_s) + mine)
            granted = available >= min(n, self._most) - _ROUNDING
            drawn = max(n, min(self._draught, available)) if granted else 0.0
            if granted or mine:
                self._cell[0] = now_s - (available - drawn) / self._rate_per_s
        if granted:
            self._mine = drawn - n
            self._expires_s = now_s + DRAUGHT_S
        return granted
