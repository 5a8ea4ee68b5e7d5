"""Percentiles as the benchmarks count them."""

import math


def percentile(ordered: list[float], share: float) -> float:
    """The smallest value that at least ``share`` percent of the ordered values do not exceed."""
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]
