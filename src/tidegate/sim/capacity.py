"""How fast a node works over time: a factor that changes in steps, and when work begun now is done."""

import bisect
import math
from collections.abc import Sequence


class CapacityCurve:
    """A factor from each point's second on; 1 before the first point. Of two points at one second the later counts."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        steps = {0.0: 1.0} | {float(at_s): float(factor) for at_s, factor in points}
        self._times_s = sorted(steps)
        self._factors = [steps[at_s] for at_s in self._times_s]

    def factor(self, at_s: float) -> float:
        return self._factors[bisect.bisect_right(self._times_s, at_s) - 1]

    def done_s(self, begin_s: float, work_s: float) -> float:
        """When ``work_s`` seconds of work at factor 1 are done; without bound where the factor stays 0."""
        place = bisect.bisect_right(self._times_s, begin_s) - 1
        now_s = begin_s
        for factor, end_s in zip(self._factors[place:], [*self._times_s[place + 1 :], math.inf], strict=True):
            if factor > 0:
                if now_s + work_s / factor <= end_s:
                    return now_s + work_s / factor
                work_s -= (end_s - now_s) * factor
            now_s = end_s
        return math.inf
