"""What devices that come by HTTP have left: the same credits and turns as at a connection, kept between requests.

A connection keeps its own. A request is over at once, and the next one of the same device may meet another process: so
they are in the directory that all processes share, and every request changes them there in one go. The directory has
room for many, not for all: who is forgotten begins anew, like anybody who was not seen for long.
"""

import struct
from collections.abc import Callable

import msgspec

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.shared.directory import NOBODY, Known
from tidegate.model.limits import LimitMet

_RATE = struct.Struct("<d")

Change = Callable[[Known | None], Known | None]


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
    ) -> LimitMet | None:
        """Pay for one publish; what keeps it where that cannot be. ``rate_per_s`` is what its class is advised,
        ``strict`` whether it is kept to that without tolerance."""
        met: LimitMet | None = None

        def taken(known: Known | None) -> Known:
            nonlocal met
            before_per_s = _rate_of(known)
            owned = self._of(known, rate_per_s, now_s, strict=strict)
            if owned.take(1, cost, now_s):
                return _kept(known, owned, rate_per_s, now_s)
            left, per_s = owned.left(cost, now_s)
            until_s = owned.wait_s(cost, now_s)
            met = LimitMet(limit=owned.reason(cost, now_s), left=left, until_s=until_s, rate_per_s=per_s)
            # A lower rate counts from the next publish on, and this is none yet.
            return _kept(known, owned, None if rate_per_s is None else max(rate_per_s, before_per_s), now_s)

        self._account(name, taken)
        return met

    def give_back(self, name: str, cost: float, rate_per_s: float | None, now_s: float) -> None:
        """What was paid just now is not used."""

        def given(known: Known | None) -> Known:
            owned = self._of(known, rate_per_s, now_s)
            owned.give_back(1, cost)
            return _kept(known, owned, rate_per_s, now_s)

        self._account(name, given)

    def _of(
        self, known: Known | None, rate_per_s: float | None, now_s: float, *, strict: bool = False
    ) -> ClientCredits:
        """As they were left, with the rate that counted then, and brought up to now."""
        left = None if known is None else known.credits
        owned = ClientCredits(self._most, self._per_s, now_s, left, self._level())
        if left is not None:
            owned.strictly(strict, left[2])
            owned.limit(_rate_of(known) or None, left[2])
        owned.limit(rate_per_s, now_s)
        return owned


def _rate_of(known: Known | None) -> float:
    """No broker is that of a request: the rate that counted last stands in its place, 0 where there was none."""
    found: float = 0.0 if known is None else _RATE.unpack(known.broker)[0]
    return found


def _kept(known: Known | None, owned: ClientCredits, rate_per_s: float | None, now_s: float) -> Known:
    return msgspec.structs.replace(
        known or NOBODY, broker=_RATE.pack(rate_per_s or 0.0), credits=owned.state(now_s), seen_at_s=now_s
    )
