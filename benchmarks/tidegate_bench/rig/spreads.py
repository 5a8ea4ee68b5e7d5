"""How far the values are apart whose median a check is."""

import statistics
from collections.abc import Sequence
from typing import Any

SPREAD = "spread"


def ratios_of(name: str, values: Sequence[float], peers: Sequence[float]) -> dict[str, float]:
    """What each is to its peer of the same pair: the median, and beside it the lowest and the highest."""
    ratios = [value / peer for value, peer in zip(values, peers, strict=True)]
    return {
        name: round(statistics.median(ratios), 3),
        f"{name}_min": round(min(ratios), 3),
        f"{name}_max": round(max(ratios), 3),
    }


def spread(check: str, values: Sequence[float]) -> dict[str, Any]:
    """A row with the lowest, the quartiles and the highest."""
    several = values if len(values) > 1 else [*values, *values]
    first, median, third = statistics.quantiles(several, n=4, method="inclusive")
    return {
        "what": SPREAD,
        "check": check,
        "count": len(values),
        "lowest": round(min(values), 3),
        "quartile_1": round(first, 3),
        "median": round(median, 3),
        "quartile_3": round(third, 3),
        "highest": round(max(values), 3),
    }
