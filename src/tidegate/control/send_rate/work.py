"""How much work a message is: the capacity, turned around, so that it holds for any mixture and any number of nodes.

A processing node gives one second of work per second. With n nodes, messages of class c that take a_c seconds each, and
f_c the share of class c among the messages::

    demand, in nodes = sum_c rate_c * a_c             capacity, messages/s = n / sum_c f_c a_c

Evidence is y = seconds of work per message over the last window, taken only from work at the limit: busy periods. A
node that idles, or a batch that was small because little waited, is none; but where more leaves than such nodes were
thought to take, they were thought too little of.

* The a_c follow y = sum_c f_c a_c by recursive least squares with forgetting (time constant ``forget_s``): with one
  class that is a running mean; with several, a mixture that changes tells them apart. A constant mixture cannot, and
  need not. The covariance is kept between ``DOUBT_MIN`` (else nothing would ever be learnt again) and ``DOUBT_MAX``
  (else it would grow without bound while nothing new is seen).
* Classes whose relative cost is given share one unknown, so that nothing has to be learnt twice.
* A jump (a node halves its speed, an external service slows all) is not noise: a fast mean of y over its prediction
  that is off by more than ``PARTING`` deviations scales all a_c at once. So old truths are forgotten within seconds,
  and noise is averaged. The deviation is never taken for less than 2 %, and one measurement counts for no more than a
  factor ``RATIO_MAX``: a stall must not drown what comes after it.
* a_c stays within a factor 100 of what was measured last: one odd measurement must not make a class free.
"""

import math
from collections.abc import Mapping

import msgspec

FAST_S = 2.5
PARTING = 3.5
DEVIATION_MIN, DEVIATION_FIRST = 0.02, 0.1
DOUBT_FIRST, DOUBT_MIN, DOUBT_MAX = 4.0, 1e-3, 25.0
SPREAD_MAX = 100.0
RATIO_MAX = 4.0
# A pause says nothing new, however long it was: it makes what was known no more doubtful than so many time constants.
PAUSES_MAX = 3.0
# Between a nanosecond and eleven days: beyond that a figure is a broken sensor's, and would drown all others.
SECONDS_MIN, SECONDS_MAX = 1e-9, 1e6
UNKNOWNS_MAX = 32  # that may be kept of classes which are gone
GIVEN = ""  # the unknown that all classes of given cost share

Matrix = tuple[tuple[float, ...], ...]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """``seconds`` of work by unknown; empty until there was evidence. ``ratio`` is the fast mean of y over expected."""

    seconds: dict[str, float] = {}
    doubt: Matrix = ()
    ratio: float = 1.0
    deviation: float = DEVIATION_FIRST

    @property
    def is_known(self) -> bool:
        return bool(self.seconds)

    def of(self, name: str, costs: Mapping[str, float]) -> float:
        """Seconds of work of one message; a class that was never seen is taken for an average one."""
        if name in costs and GIVEN in self.seconds:
            return self.seconds[GIVEN] * costs[name]
        mean = sum(self.seconds.values()) / len(self.seconds) if self.seconds else 0.0
        return self.seconds.get(name, mean)

    def mixed(self, rates: Mapping[str, float], costs: Mapping[str, float]) -> float:
        """Seconds of work of a message of this mixture."""
        total = sum(rates.values())
        if total <= 0:
            return sum(self.of(name, costs) for name in rates) / len(rates) if rates else self.of(GIVEN, costs)
        return sum(rate * self.of(name, costs) for name, rate in rates.items()) / total

    def scaled(self, factor: float) -> "Work":
        """Every message takes so many times the work."""
        return msgspec.structs.replace(
            self, seconds={name: one * factor for name, one in self.seconds.items()}, ratio=1.0
        )

    def learnt(
        self,
        found_s: float,
        rates: Mapping[str, float],
        costs: Mapping[str, float],
        passed_s: float,
        forget_s: float,
    ) -> "Work":
        """Evidence: a message of the mixture ``rates`` took ``found_s`` seconds of work, seen for ``passed_s``."""
        found_s = min(SECONDS_MAX, max(SECONDS_MIN, found_s))
        shares = _shares(rates, costs)
        known = self if self.is_known else Work(seconds=dict.fromkeys(shares, found_s / sum(shares.values())))
        known = known._with_room_for(shares)
        names = list(known.seconds)
        seen = [shares.get(name, 0.0) for name in names]
        expected = sum(share * known.seconds[name] for share, name in zip(seen, names, strict=True))
        known = known._after_jump(found_s / expected, passed_s)
        expected = sum(share * known.seconds[name] for share, name in zip(seen, names, strict=True))
        gains, doubt = _least_squares(known.doubt, seen, math.exp(-min(passed_s / forget_s, PAUSES_MAX)))
        seconds = {
            name: known.seconds[name] + gain * (found_s - expected) for name, gain in zip(names, gains, strict=True)
        }
        low, high = found_s / SPREAD_MAX, found_s * SPREAD_MAX
        return msgspec.structs.replace(
            known, seconds={name: min(high, max(low, one)) for name, one in seconds.items()}, doubt=doubt
        )

    def _with_room_for(self, shares: Mapping[str, float]) -> "Work":
        """Unknowns that are new begin as an average message, in doubt; of too many, those that nobody sends go."""
        mean = sum(self.seconds.values()) / len(self.seconds)
        crowded = len(self.seconds.keys() | shares.keys()) > UNKNOWNS_MAX
        kept = [name for name in self.seconds if name in shares or not crowded]
        names = [*kept, *(name for name in shares if name not in kept)]
        places = {name: place for place, name in enumerate(self.seconds) if place < len(self.doubt)}
        doubt = tuple(
            tuple(
                self.doubt[places[row]][places[column]]
                if row in places and column in places
                else DOUBT_FIRST * (row == column)
                for column in names
            )
            for row in names
        )
        return msgspec.structs.replace(
            self, seconds={name: self.seconds.get(name, mean) for name in names}, doubt=doubt
        )

    def _after_jump(self, ratio: float, passed_s: float) -> "Work":
        gain = 1.0 - math.exp(-passed_s / FAST_S)
        ratio = min(RATIO_MAX, max(1.0 / RATIO_MAX, ratio))
        fast = self.ratio + gain * (ratio - self.ratio)
        deviation = self.deviation + gain / 4 * (abs(ratio - fast) - self.deviation)
        if abs(fast - 1.0) <= PARTING * max(deviation, DEVIATION_MIN):
            return msgspec.structs.replace(self, ratio=fast, deviation=deviation)
        seconds = {name: one * fast for name, one in self.seconds.items()}
        return msgspec.structs.replace(self, seconds=seconds, ratio=1.0, deviation=deviation)


def _shares(rates: Mapping[str, float], costs: Mapping[str, float]) -> dict[str, float]:
    """Of each unknown among the messages; classes of given cost together, each counting as much as it costs."""
    total = sum(rates.values())
    shares: dict[str, float] = {}
    for name, rate in rates.items():
        share = rate / total if total > 0 else 1.0 / len(rates)
        unknown, cost = (GIVEN, costs[name]) if name in costs else (name, 1.0)
        shares[unknown] = shares.get(unknown, 0.0) + share * cost
    return shares or {GIVEN: 1.0}


def _least_squares(doubt: Matrix, seen: list[float], remembered: float) -> tuple[list[float], Matrix]:
    """One step of recursive least squares: the gain of each unknown, and the doubt that is left."""
    size = range(len(seen))
    leaning = [sum(doubt[row][column] * seen[column] for column in size) for row in size]
    scale = remembered + sum(leaning[row] * seen[row] for row in size)
    gains = [one / scale for one in leaning]
    left = [[(doubt[row][column] - gains[row] * leaning[column]) / remembered for column in size] for row in size]
    for place in size:
        left[place][place] = max(left[place][place], DOUBT_MIN)
    shrink = min(1.0, DOUBT_MAX / max(left[place][place] for place in size))
    return gains, tuple(tuple(one * shrink for one in row) for row in left)
