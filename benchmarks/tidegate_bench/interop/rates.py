"""Whether what was observed on one side is observed on the other as often: Fisher's exact test, looked at in stages.

A broker varies by itself: the same script may end otherwise once in a hundred times, with a gateway or without. So one
play that differs proves nothing, and neither does one that agrees. Where the first plays of a behaviour differ, it is
played anew on both sides, and the rates decide. The plays that raised the suspicion do not count: they were chosen
because they differ.

Each of so many behaviours may be suspected, and each is looked at up to three times. The level is divided by both
(Bonferroni), so that a gateway that changes nothing is blamed in at most one run of a hundred. Pure.
"""

import math
from collections import Counter
from collections.abc import Iterator

import msgspec

LEVEL = 0.01
# Plays a side after which the counts are looked at. The first decides where a difference is systematic or there is
# hardly any; what lies between is played on, and the last decides whatever it finds.
LOOKS = (20, 60, 180)
# Above it two sides are not worth further plays: by chance alone every fifth pair of equal sides differs as much.
DOUBT = 0.2


class Tally(msgspec.Struct, frozen=True):
    """How often each observation was made, by its text."""

    direct: Counter[str]
    through: Counter[str]

    @property
    def plays(self) -> int:
        """Of the side that was played less."""
        return min(self.direct.total(), self.through.total())


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``same`` is None where more plays are wanted."""

    same: bool | None
    p: float
    p_corrected: float


def decide(tally: Tally, behaviours: int) -> Verdict:
    """What the counts say, where so many behaviours are compared in all."""
    p = p_value(tally)
    corrected = min(1.0, p * behaviours * len(LOOKS))
    if tally.plays < LOOKS[0]:
        same = None
    elif corrected < LEVEL:
        same = False
    else:
        same = True if p >= DOUBT or tally.plays >= LOOKS[-1] else None
    return Verdict(same=same, p=p, p_corrected=corrected)


def plays_wanted(tally: Tally, behaviours: int) -> int:
    """How many more a side before the next look; 0 where it is decided."""
    if decide(tally, behaviours).same is not None:
        return 0
    return next(look for look in LOOKS if look > tally.plays) - tally.plays


def p_value(tally: Tally) -> float:
    """Each observation against all others, corrected for how many there are: a side may not only fail more often, it
    may also fail in a way of its own."""
    sides = tally.direct.total(), tally.through.total()
    found = [fisher(direct, sides[0], through, sides[1]) for direct, through in _splits(tally)]
    return min(1.0, min(found) * len(found)) if found else 1.0


def fisher(first: int, of_first: int, second: int, of_second: int) -> float:
    """Two-sided: how likely counts at least as unlikely as these are where both sides have the same rate.

    Given how many there are on both sides together, the first has a hypergeometric share of them. Whole numbers
    throughout, so that equally likely tables are equal.
    """
    both = first + second
    lowest, highest = max(0, both - of_second), min(both, of_first)
    ways = [math.comb(of_first, count) * math.comb(of_second, both - count) for count in range(lowest, highest + 1)]
    found = ways[first - lowest]
    return sum(way for way in ways if way <= found) / math.comb(of_first + of_second, both)


def _splits(tally: Tally) -> Iterator[tuple[int, int]]:
    """An observation made once in all tells nothing, whichever side made it; of two, either tells the same."""
    both = tally.direct + tally.through
    repeated = [text for text, count in both.items() if count > 1]
    for text in repeated[:1] if len(both) == 2 else repeated:
        yield tally.direct[text], tally.through[text]
