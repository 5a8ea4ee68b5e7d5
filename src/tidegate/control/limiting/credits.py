"""What one client may publish: credits, which bytes and messages cost, and turns, which messages alone cost.

**Credits** keep a client from taking what belongs to all. A publish costs one and one more per 4 KiB. At most ``most``
are kept, and they come back continuously (in steps, all clients would go on at the same moment), slower while the
gateway itself is late. With the overload level L from 0 to 10::

    refill per second = per_s * 100 ** (-L / 10)

Every level takes the same share off (37 %), so one step means as much to a busy gateway as to a calm one, and at 10 one
percent is left: a client is never silenced, because one that is silent cannot be told that it is over.

**Turns** enforce the rate that a client's class is advised: rate r gives ``TOLERANCE * r`` turns a second, ``BURST`` of
them are kept. A device that follows advice never runs out of them:

* It hears advice with the acknowledgement of its own message. So a lower rate counts from the client's next publish on,
  and when a first limit comes there are turns for that publish and for one right behind it.
* Having heard a lower rate it spreads: the next message may come after the old interval already, in which only r2 / r1
  of a turn came back. The rest, 1 - r2 / r1, is added when the rate falls from r1 to r2.
* Later ones keep to the new interval, in which more than a whole turn comes back.

A client of which more than ``BURST`` publishes wait does not follow advice. It is kept to the rate ``strictly``:
without tolerance, without additions, and to a lower one at once.

A client's credits and turns outlast its connection (``state``): coming again refills nothing.
"""

from tidegate.control.limiting.token_bucket import ROUNDING, WAIT_S_MIN

BYTES_PER_CREDIT = 4096
LEVEL_MAX = 10
TOLERANCE = 1.05
BURST = 3.0

OWN_RATE = "its own rate"
OWN_CREDITS = "its own credits"


def cost_of(packet_bytes: int) -> int:
    """Credits that a publish of this size costs."""
    return 1 + packet_bytes // BYTES_PER_CREDIT


def refill_share(level: int) -> float:
    """Which share of its credits a client gets back at an overload level."""
    return float(100.0 ** (-min(max(level, 0), LEVEL_MAX) / LEVEL_MAX))


class ClientCredits:
    """Of one client. ``state`` is what an earlier connection of the same client left behind."""

    __slots__ = (
        "_at_s", "_credits", "_full_per_s", "_next_per_s", "_per_s", "_rate_per_s", "_tolerance", "_turned_s", "_turns",
        "most"
    )  # fmt: skip

    def __init__(
        self, most: float, per_s: float, now_s: float, state: tuple[float, float, float] | None = None, level: int = 0
    ) -> None:
        self.most = most
        self._full_per_s, self._per_s = per_s, per_s * refill_share(level)
        self._credits, self._turns, self._at_s = (most, BURST, now_s) if state is None else state
        self._turned_s = self._at_s  # of the turns: while nothing is enforced, time does not count for them
        self._rate_per_s = 0.0  # 0 where nothing is enforced
        self._next_per_s = 0.0  # counts from the next publish on; 0 where none is to come
        self._tolerance = TOLERANCE

    def take(self, publishes: int, cost: float, now_s: float) -> bool:
        """Whether so many publishes may pass, all of them; if so they are paid for."""
        passed_s = now_s - self._at_s
        if passed_s > 0.0:
            self._at_s = now_s
            credits_now = self._credits + passed_s * self._per_s
            self._credits = credits_now if credits_now < self.most else self.most
        # One publish that costs more than there can ever be passes when there is no more to wait for.
        if cost - self._credits > ROUNDING and (publishes > 1 or self.most - self._credits > ROUNDING):
            return False
        if self._rate_per_s:
            self._turn(now_s)
            if publishes - self._turns > ROUNDING:
                return False
            self._turns -= publishes
            if self._next_per_s:
                self._slow_down()
        self._credits -= cost
        return True

    def give_back(self, publishes: int, cost: float) -> None:
        """What was taken just now is not used."""
        self._credits = min(self.most, self._credits + cost)
        if self._rate_per_s:
            self._turns = min(BURST, self._turns + publishes)

    def wait_s(self, cost: float, now_s: float) -> float:
        """How long until one publish may pass."""
        self._refill(now_s)
        lacking = min(cost, self.most) - self._credits
        wait_s = 0.0 if lacking <= ROUNDING else max(WAIT_S_MIN, lacking / self._per_s)
        if self._rate_per_s and 1.0 - self._turns > ROUNDING:
            wait_s = max(wait_s, WAIT_S_MIN, (1.0 - self._turns) / (self._rate_per_s * self._tolerance))
        return wait_s

    def reason(self, cost: float, now_s: float) -> str:
        """Why one publish of this cost has to wait."""
        self._refill(now_s)
        return OWN_CREDITS if min(cost, self.most) - self._credits > ROUNDING else OWN_RATE

    def left(self, cost: float, now_s: float) -> tuple[float, float]:
        """Of what one publish of this cost has to wait for: how much is left, and what comes back a second."""
        self._refill(now_s)
        if min(cost, self.most) - self._credits > ROUNDING or not self._rate_per_s:
            return max(0.0, self._credits), self._per_s
        return max(0.0, self._turns), self._rate_per_s

    def limit(self, rate_per_s: float | None, now_s: float) -> None:
        """Enforce a rate, that which the client's class is advised; None enforces none."""
        if rate_per_s is None:
            if self._rate_per_s:
                self._rate_per_s = self._next_per_s = 0.0
                self._turns, self._turned_s = BURST, now_s
        elif rate_per_s < self._rate_per_s and self._tolerance > 1.0:
            self._next_per_s = rate_per_s
        elif self._rate_per_s:
            self._turn(now_s)
            self._rate_per_s, self._next_per_s = rate_per_s, 0.0
        else:
            self._rate_per_s = rate_per_s
            self._turn(now_s)

    def strictly(self, strict: bool, now_s: float) -> None:
        """Whether the client is kept to the rate without tolerance, because too much of it waits."""
        self._refill(now_s)
        self._tolerance = 1.0 if strict else TOLERANCE
        if strict and self._next_per_s:
            self._rate_per_s, self._next_per_s = self._next_per_s, 0.0

    @property
    def rate_per_s(self) -> float | None:
        """The rate that is enforced, or will be from the next publish on."""
        return self._next_per_s or self._rate_per_s or None

    def overload(self, level: int, now_s: float) -> None:
        """The gateway is so late, from 0 to 10."""
        self._refill(now_s)
        self._per_s = self._full_per_s * refill_share(level)

    def state(self, now_s: float) -> tuple[float, float, float]:
        """Credits, turns and the moment they are of, for the client's next connection."""
        self._refill(now_s)
        return self._credits, self._turns, self._at_s

    def _refill(self, now_s: float) -> None:
        if now_s > self._at_s:
            self._credits = min(self.most, self._credits + (now_s - self._at_s) * self._per_s)
            self._at_s = now_s
        if self._rate_per_s:
            self._turn(now_s)

    def _turn(self, now_s: float) -> None:
        if now_s > self._turned_s:
            self._turns = min(BURST, self._turns + (now_s - self._turned_s) * self._rate_per_s * self._tolerance)
            self._turned_s = now_s

    def _slow_down(self) -> None:
        """The client has just published: it hears of the lower rate now."""
        self._turns = min(BURST, self._turns + 1.0 - self._next_per_s / self._rate_per_s)
        self._rate_per_s, self._next_per_s = self._next_per_s, 0.0
