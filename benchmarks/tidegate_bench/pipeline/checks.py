"""From the rows of the pipeline benchmark to its checks.

Where two are compared they run in pairs, one right after the other: the check is the median of the pairs' ratios.
"""

import statistics
from typing import Any

from tidegate.report.checks import Check
from tidegate_bench.rig.spreads import SPREAD, spread

NATSPY, JETSTREAM, DELTA, PARQUET = "nats-py", "jetstream", "delta peer", "parquet"
SMALL, LARGE, DELAY, EMPTY = "delta small", "delta large", "delay", "empty batch"
# Which of a pair is divided by which.
PAIRS = {"jetstream_vs_natspy": (JETSTREAM, NATSPY), "jetstream_vs_parquet": (DELTA, PARQUET)}
NATSPY_FLOOR = 15_000.0

Row = dict[str, Any]


def spreads(rows: list[Row]) -> list[Row]:
    """How far the pairs' ratios are apart."""
    return [spread(check, _ratios(rows, *pair)) for check, pair in PAIRS.items()]


def checks(rows: list[Row]) -> list[Check]:
    """``rows`` with those of ``spreads``."""
    ratio = {row["check"]: row["median"] for row in rows if row["what"] == SPREAD}
    growth = _median(rows, LARGE, "us_per_row") / _median(rows, SMALL, "us_per_row")
    delay = _median(rows, DELAY, "p50_s") / _median(rows, EMPTY, "p50_s")
    return [
        Check.at_least("natspy_rows_per_s", round(_median(rows, NATSPY, "rows_per_s")), NATSPY_FLOOR),
        Check.at_least("jetstream_vs_natspy", ratio["jetstream_vs_natspy"], 8),
        Check.at_least("jetstream_vs_parquet", ratio["jetstream_vs_parquet"], 0.6),
        Check.at_most("cost_per_row_growth", round(growth, 3), 1.15),
        Check.at_most("delay_vs_empty_batch", round(delay, 2), 2.5),
    ]


def _ratios(rows: list[Row], above: str, below: str) -> list[float]:
    rates = {(row["what"], row["pair"]): row["rows_per_s"] for row in rows if row["what"] in (above, below)}
    return [rate / rates[below, pair] for (what, pair), rate in rates.items() if what == above]


def _median(rows: list[Row], what: str, key: str) -> float:
    return float(statistics.median(row[key] for row in rows if row["what"] == what))
