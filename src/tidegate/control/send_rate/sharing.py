"""Weighted max-min sharing: who has asked for little gets it, the rest is split by weight.

With a level L, a party of weight w and size s (how much one unit of its rate takes) that wants at most d gets::

    rate(L) = min(d, L * w)          taken(L) = s * rate(L)

and L is the highest at which all that is taken fits the capacity. So nobody gets more than it wants, nobody below its
demand gets less per weight than another, and what the modest leave is not lost. Taken as a whole never exceeds the
capacity.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec


class Party(msgspec.Struct, frozen=True):
    """``size`` is what one unit of rate takes: devices times cost; ``wants`` the rate it would have by itself."""

    weight: float
    size: float
    wants: float

    def rate(self, level: float) -> float:
        return min(self.wants, level * self.weight)


def level(parties: Sequence[Party], capacity: float) -> float:
    """The highest level at which everything that is taken fits; infinite where everybody gets all it wants.

    A capacity of nothing, or less, is the level 0.
    """
    left = capacity
    # In the order in which a rising level satisfies them: each leaves what it does not take to the others.
    in_turn = sorted(parties, key=lambda one: one.wants / one.weight)
    # The weights of each and all behind it, added up from the end: taking off from a large sum would leave its error.
    open_weights = [*accumulate(party.size * party.weight for party in reversed(in_turn))][::-1]
    for party, open_weight in zip(in_turn, open_weights, strict=True):
        satisfied_at = party.wants / party.weight
        if open_weight > 0 and satisfied_at * open_weight > left:
            return max(0.0, left / open_weight)
        left -= party.size * party.wants
    return math.inf
