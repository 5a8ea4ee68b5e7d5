"""What waits of one connection: publishes in the order in which they came, until there are credits and tokens for them.

The first in line pays its client's credits and turns, then reserves its place in the bucket of each limit on its
topic, and is released when all of them have its tokens. Everything behind it waits with it, packets other than
publishes too (they cost nothing): nothing overtakes. Only the first in line has places reserved, so clients that share
a bucket take turns however much waits of each.

Nothing waits for longer than ``hold_s_max`` and half the keep-alive: a client that hears nothing for so long would go
and send it all again. Whoever holds then closes the connection (``overdue``). A message that has expired meanwhile is
not released; it is handed out by ``take_expired`` to be acknowledged and counted.

When a client's rate is no longer limited, what waits does not come in one burst, because it would come from all clients
at once: it drains at twice the last rate, and twice as fast again every ``DOUBLE_S``, so that also a client that sends
much catches up. The limit is gone when nothing waits.

Time comes in as ``now_s``, on any clock that only grows.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.control.limiting.credits import BURST, ClientCredits
from tidegate.control.limiting.token_bucket import TokenBucket
from tidegate.model.limits import LimitMet

DOUBLE_S = 3.0
TOPIC_LIMIT = "a limit on its topics"
_CONTROL: Final = -1  # in place of a QoS
_MANY: Final = int(BURST) + 1  # so many waiting publishes are not those of a device that follows advice


class _Held(NamedTuple):
    packet: bytes
    qos: int
    cost: float
    since_s: float
    buckets: Sequence[TokenBucket] = ()
    expires_s: float = math.inf


class Hold:
    """Of one connection. ``keep_alive_s`` of 0 is none. Read ``waiting`` (publishes), ``waiting_bytes``, ``is_full``
    (read no more from the client), ``held_total`` and ``reason``; call ``release`` after a push, and when it is due."""

    __slots__ = (
        "_bytes_max", "_doubles_s", "_draining_per_s", "_expired", "_granted_s", "_hold_s_max", "_queue", "credits",
        "held_total", "is_full", "reason", "waiting", "waiting_bytes"
    )  # fmt: skip

    def __init__(self, credits: ClientCredits, *, bytes_max: int, hold_s_max: float, keep_alive_s: float = 0.0) -> None:
        self.credits = credits
        self._bytes_max = bytes_max
        self._hold_s_max = min(hold_s_max, keep_alive_s / 2) if keep_alive_s > 0 else hold_s_max
        self._queue: deque[_Held] = deque()
        self._expired: list[bytes] = []
        self._granted_s: float | None = None  # when the first in line may go; None while it has not paid
        self._draining_per_s: float | None = None  # the rate, where there is no limit but for what waits
        self._doubles_s = math.inf
        self.waiting = self.waiting_bytes = self.held_total = 0
        self.is_full = False
        self.reason = ""

    # -- what the client sends

    def passes(self, publishes: int, cost: float, now_s: float) -> bool:
        """Whether so many publishes may go on as they came, all of them: nothing waits, and they are paid for."""
        return not self._queue and self.credits.take(publishes, cost, now_s)

    def passes_limits(self, publishes: int, cost: float, now_s: float, buckets: Sequence[TokenBucket]) -> bool:
        """The same on topics with limits of their own. What does not pass takes nothing from anybody."""
        if self._queue or not self.credits.take(publishes, cost, now_s):
            return False
        for place, bucket in enumerate(buckets):
            if not bucket.take(publishes, now_s):
                for taken in buckets[:place]:
                    taken.give_back(publishes)
                self.credits.give_back(publishes, cost)
                return False
        return True

    def push(
        self,
        packet: bytes,
        *,
        qos: int,
        cost: float,
        now_s: float,
        buckets: Sequence[TokenBucket] = (),
        expires_s: float | None = None,
    ) -> None:
        """A publish that did not pass. At ``expires_s`` it is worth nothing any more."""
        self._push(_Held(packet, qos, cost, now_s, buckets, math.inf if expires_s is None else expires_s))
        self.waiting += 1
        self.held_total += 1
        if self.waiting == _MANY:
            self.credits.strictly(True, now_s)

    def push_control(self, packet: bytes, now_s: float) -> None:
        """A packet other than a publish: it keeps its place and costs nothing."""
        self._push(_Held(packet, _CONTROL, 0.0, now_s))

    # -- what goes on

    def release(self, now_s: float) -> list[bytes]:
        """The packets that may go on now, in order."""
        released: list[bytes] = []
        self._double(now_s)
        first_s = now_s  # since when the first in line has been that
        while self._queue:
            head = self._queue[0]
            if head.expires_s <= now_s:
                self._give_back(head)
                self._expired.append(self._pop(now_s).packet)
            elif head.qos == _CONTROL:
                released.append(self._pop(now_s).packet)
            elif self._may_go(head, max(first_s, head.since_s), now_s):
                first_s = self._granted_s if head.buckets and self._granted_s is not None else now_s
                released.append(self._pop(now_s).packet)
            else:
                break
        return released

    def publishes(self) -> list[bytes]:
        """Those that wait, in their order."""
        return [held.packet for held in self._queue if held.qos != _CONTROL]

    def take_expired(self) -> list[bytes]:
        """Publishes that expired while they waited, once."""
        expired, self._expired = self._expired, []
        return expired

    def due_s(self, now_s: float) -> float | None:
        """When to call ``release`` again, and to look whether something is overdue; None where nothing waits."""
        if not self._queue:
            return None
        head = self._queue[0]
        due_s = self._granted_s if self._granted_s is not None else now_s + self.credits.wait_s(head.cost, now_s)
        overdue_s = head.since_s + self._hold_s_max
        return min(due_s, head.expires_s, self._doubles_s, overdue_s if overdue_s > now_s else math.inf)

    def met(self, now_s: float) -> LimitMet | None:
        """The limit that the first in line waits for; None where nothing waits."""
        if not self._queue or not self.reason:
            return None
        head = self._queue[0]
        if self._granted_s is not None:  # it has paid its client's share, and waits among others
            bucket = head.buckets[0] if head.buckets else None
            rate_per_s = bucket.rate_per_s if bucket is not None else None
            return LimitMet(
                limit=self.reason, left=0.0, until_s=max(0.0, self._granted_s - now_s), rate_per_s=rate_per_s
            )
        left, rate_per_s = self.credits.left(head.cost, now_s)
        until_s = self.credits.wait_s(head.cost, now_s)
        return LimitMet(limit=self.reason, left=round(left, 3), until_s=round(until_s, 3), rate_per_s=rate_per_s)

    def would_meet(self, cost: float, now_s: float) -> LimitMet:
        """The limit that a publish of this cost, which does not pass, would wait for."""
        left, rate_per_s = self.credits.left(cost, now_s)
        until_s = self.credits.wait_s(cost, now_s)
        reason = self.credits.reason(cost, now_s) if until_s > 0 else TOPIC_LIMIT
        return LimitMet(limit=reason, left=round(left, 3), until_s=round(until_s, 3), rate_per_s=rate_per_s)

    def overdue(self, now_s: float) -> bool:
        """Whether the oldest has waited longer than anything may."""
        return bool(self._queue) and now_s - self._queue[0].since_s >= self._hold_s_max

    @property
    def oldest_s(self) -> float | None:
        """Since when the first in line waits."""
        return self._queue[0].since_s if self._queue else None

    def abandon(self, now_s: float) -> int:
        """The connection ends: places are given to others. How many publishes at QoS 0 are lost by that; what has a
        higher one was not acknowledged, so its client sends it again."""
        if self._queue:
            self._give_back(self._queue[0])
        lost = sum(held.qos == 0 for held in self._queue)
        self._queue.clear()
        self._empty(now_s)
        return lost

    # -- what is enforced

    def limit(self, rate_per_s: float | None, now_s: float) -> None:
        """Enforce the rate that the client's class is advised; None lifts it, in steps where something waits."""
        if rate_per_s is not None:
            self._draining_per_s, self._doubles_s = None, math.inf
            self.credits.limit(rate_per_s, now_s)
        elif self._draining_per_s is None:
            last_per_s = self.credits.rate_per_s
            if self._queue and last_per_s is not None:
                self._drain(2 * last_per_s, now_s)
            else:
                self.credits.limit(None, now_s)

    def _drain(self, rate_per_s: float, now_s: float) -> None:
        self._draining_per_s, self._doubles_s = rate_per_s, now_s + DOUBLE_S
        self.credits.limit(rate_per_s, now_s)

    def _double(self, now_s: float) -> None:
        if now_s >= self._doubles_s and self._draining_per_s is not None:
            self._drain(2 * self._draining_per_s, now_s)

    # -- the line

    def _may_go(self, head: _Held, first_s: float, now_s: float) -> bool:
        """The first in line pays its client's share and reserves its place among others; then it waits for that."""
        if self._granted_s is None:
            if not self.credits.take(1, head.cost, now_s):
                self.reason = self.credits.reason(head.cost, now_s)
                return False
            self._granted_s = self._reserve(head.buckets, first_s, now_s) if head.buckets else now_s
        return self._granted_s <= now_s

    def _reserve(self, buckets: Sequence[TokenBucket], first_s: float, now_s: float) -> float:
        """As of the moment it became the first: a timer that was late must not cost the client its rate."""
        places_s = [bucket.reserve(1, first_s) for bucket in buckets]
        granted_s = max(places_s)
        if granted_s > now_s:
            self.reason = f"the topics {buckets[places_s.index(granted_s)].name}"
        return granted_s

    def _push(self, held: _Held) -> None:
        self._queue.append(held)
        self.waiting_bytes += len(held.packet)
        self.is_full = self.waiting_bytes > self._bytes_max

    def _pop(self, now_s: float) -> _Held:
        head = self._queue.popleft()
        self._granted_s = None
        if head.qos != _CONTROL:
            self.waiting -= 1
            if self.waiting == _MANY - 1:
                self.credits.strictly(False, now_s)
        self.waiting_bytes -= len(head.packet)
        self.is_full = self.waiting_bytes > self._bytes_max
        if not self._queue:
            self._empty(now_s)
        return head

    def _empty(self, now_s: float) -> None:
        self.waiting = self.waiting_bytes = 0
        self.is_full, self.reason, self._granted_s = False, "", None
        self.credits.strictly(False, now_s)
        if self._draining_per_s is not None:
            self._draining_per_s, self._doubles_s = None, math.inf
            self.credits.limit(None, now_s)

    def _give_back(self, head: _Held) -> None:
        if self._granted_s is not None:
            for bucket in head.buckets:
                bucket.give_back(1)
