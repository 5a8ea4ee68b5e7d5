"""Means with intervals over seeds."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond them the normal one is near enough.
_T95 = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
)


class MeanInterval(msgspec.Struct, frozen=True):
    """``half`` is half the width of the 95 % interval of the mean; 0 for a single value."""

    mean: float
    half: float


def mean_interval(values: Sequence[float]) -> MeanInterval:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return MeanInterval(mean, 0.0)
    quantile = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else 1.96
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return MeanInterval(mean, half)


def grouped(rows: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
