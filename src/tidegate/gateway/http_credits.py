"""What devices that come by HTTP have left: the same credits and turns as at a connection, kept between requests.

A connection keeps its own. A request is over at once, and the next one of the same device may meet another process: so
they are in the directory that all processes share, and every request changes them there in one go. The directory has
room for many, not for all: who is forgotten begins anew, like anybody who was not seen for long.
"""

import struct
from collections.abc import Callable

import msgspec

from tidegate.control.limiting.credits import OWN_CREDITS, ClientCredits, refill_share
from tidegate.gateway.shared.directory import NOBODY, Known

_RATE = struct.Struct("<d")

Change = Callable[[Known | None], Known | None]


class Met(msgspec.Struct, frozen=True):
    """A limit that keeps a request from passing now: how fast it lets go, what is left of it, and for how long that is
    too little."""

    limit: str
    rate_per_s: float
    left: float
    until_s: float


class HttpCredits:
    """``account`` changes what is known of somebody who comes by HTTP; ``level`` is how overloaded this process is."""

    def __init__(
        self,
        account: Callable[[str, Change], Known | None],
        *,
        most: float,
        per_s: float,
        level: Callable[[], int] = lambda: 0,
    ) -> None:
        self._account, self._most, self._per_s, self._level = account, most, per_s, level

    def take(
        self, name: str, cost: float, rate_per_s: float | None, now_s: float, *, strict: bool = False
    ) -> Met | None:
        """Pay for one publish; what keeps it where that cannot be. ``rate_per_s`` is what its class is advised,
        ``strict`` whether it is kept to that without tolerance."""
        met: Met | None = None

        def taken(known: Known | None) -> Known | None:
            nonlocal met
            owned = self._of(known, rate_per_s, now_s, strict=strict)
            if owned.take(1, cost, now_s):
                return _kept(known, owned, now_s)
            met = self._met(owned, cost, now_s)
            return None

        self._account(name, taken)
        return met

    def give_back(self, name: str, cost: float, rate_per_s: float | None, now_s: float) -> None:
        """What was paid just now is not used."""

        def given(known: Known | None) -> Known | None:
            owned = self._of(known, rate_per_s, now_s)
            owned.give_back(1, cost)
            return _kept(known, owned, now_s)

        self._account(name, given)

    def _of(
        self, known: Known | None, rate_per_s: float | None, now_s: float, *, strict: bool = False
    ) -> ClientCredits:
        """As they were left, with the rate that counted then, and brought up to now."""
        left = None if known is None else known.credits
        owned = ClientCredits(self._most, self._per_s, now_s, left, self._level())
        if known is not None and left is not None:
            owned.strictly(strict, left[2])
            (before_per_s,) = _RATE.unpack(known.broker)
            if before_per_s:
                owned.limit(before_per_s, left[2])
        owned.limit(rate_per_s, now_s)
        return owned

    def _met(self, owned: ClientCredits, cost: float, now_s: float) -> Met:
        reason, until_s = owned.reason(cost, now_s), owned.wait_s(cost, now_s)
        credits_left, turns_left, _ = owned.state(now_s)
        if reason == OWN_CREDITS:
            return Met(reason, self._per_s * refill_share(self._level()), credits_left, until_s)
        return Met(reason, owned.rate_per_s or 0.0, turns_left, until_s)


def _kept(known: Known | None, owned: ClientCredits, now_s: float) -> Known:
    """No broker is that of a request: the rate stands in its place."""
    return msgspec.structs.replace(
        known or NOBODY,
        broker=_RATE.pack(owned.rate_per_s or 0.0),
        credits=owned.state(now_s),
        seen_at_s=now_s,
    )
