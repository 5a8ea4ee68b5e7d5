"""A token bucket: ``rate_per_s`` tokens a second flow in, at most ``burst`` are kept, and a message takes one.

Refill is continuous: no ticks, so nobody is released in step. With U the unfinished work that a queue served at the
rate r would have, a message that arrives when every one before it was let through in order waits for

    max(0, U + 1 - b) / r

Who has to wait may *reserve*: it takes its tokens at once, below zero if need be, and is told from when on they are
its own. Reservations stand in line in the order in which they were made, and ``take`` refuses everybody while somebody
stands there; so a place does not depend on whose timer is lucky. Who leaves the line gives its tokens back.

Clamps. A message that costs more than the burst passes when the bucket is full, because it could never pass otherwise;
the debt keeps the long-term rate exact. A clock that goes back refills nothing and takes nothing away. Rounding may
let a message pass ``ROUNDING`` tokens early, once and not per message: the bucket owes them. Who is told to wait waits
for ``WAIT_S_MIN`` at least: less would not move a clock that has run for years.
"""

from typing import Protocol

ROUNDING = 1e-6
WAIT_S_MIN = 1e-6


class Bucket(Protocol):
    """What a hold needs of a bucket, be it this one or one that several processes share."""

    @property
    def name(self) -> str:
        """The topics it is for, as an operator wrote them."""

    def take(self, cost: float, now_s: float, /) -> bool:
        """Take the tokens if they are there and nobody stands in line for them."""

    def reserve(self, cost: float, now_s: float, /) -> float:
        """Take the tokens and say from when on they are one's own. ``now_s`` may lie before what was said last."""

    def give_back(self, cost: float, /) -> None:
        """What was taken or reserved is not used."""


class TokenBucket:
    __slots__ = ("_at_s", "_tokens", "burst", "name", "rate_per_s")

    def __init__(self, rate_per_s: float, burst: float, now_s: float, name: str = "") -> None:
        self.rate_per_s, self.burst, self.name = rate_per_s, burst, name
        self._tokens, self._at_s = burst, now_s

    def take(self, cost: float, now_s: float) -> bool:
        self._refill(now_s)
        if min(cost, self.burst) - self._tokens > ROUNDING:
            return False
        self._tokens -= cost
        return True

    def wait_s(self, cost: float, now_s: float) -> float:
        """How long until ``take`` would succeed if nobody else took anything."""
        self._refill(now_s)
        lacking = min(cost, self.burst) - self._tokens
        return 0.0 if lacking <= ROUNDING else max(WAIT_S_MIN, lacking / self.rate_per_s)

    def reserve(self, cost: float, now_s: float) -> float:
        self._refill(now_s)
        lacking = min(cost, self.burst) - self._tokens
        self._tokens -= cost
        # Of a time that lies back nothing was refilled: the tokens are as of the latest moment known.
        return now_s if lacking <= 0 else max(now_s, self._at_s + lacking / self.rate_per_s)

    def give_back(self, cost: float) -> None:
        self._tokens = min(self.burst, self._tokens + cost)

    def change(self, rate_per_s: float, burst: float, now_s: float) -> None:
        """Another rate and burst from now on. Who stands in line keeps the moment it was told."""
        self._refill(now_s)
        self.rate_per_s, self.burst = rate_per_s, burst
        self._tokens = min(self._tokens, burst)

    def _refill(self, now_s: float) -> None:
        if now_s > self._at_s:
            self._tokens = min(self.burst, self._tokens + (now_s - self._at_s) * self.rate_per_s)
            self._at_s = now_s
