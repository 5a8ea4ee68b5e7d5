"""From the rows of the storm to its checks, and to where the time goes."""

import os
import statistics
from collections.abc import Iterator
from typing import Any

from tidegate.report.checks import Check
from tidegate_bench.rig.spreads import spread

DIRECT, ALONE, STORM, STORM_TLS, SERIES = "direct", "bounce, no gateway", "bounce", "bounce, TLS", "series"
SPREAD, TIME = "spread", "where the time goes"
VS_BOUNCE, TLS_VS_BOUNCE, FACTOR = "all_back_vs_bounce", "all_back_tls_vs_bounce", "all_back_factor"
VS_BOUNCE_MAX = 1.6
KIB_PER_CLIENT_MAX = 64.0
WORKERS = ("clients", "gateway", "broker")

Row = dict[str, Any]


def checks(rows: list[Row]) -> list[Check]:
    """Medians over the repetitions; one that did not end counts with the time that was waited."""
    grown_kib = [(row["rss_kib_peak"] - row["rss_kib_before"]) / row["clients"] for row in _of(rows, STORM)]
    return [
        Check.at_most(VS_BOUNCE, round(statistics.median(ratios(rows)[VS_BOUNCE]), 3), VS_BOUNCE_MAX),
        Check.at_most("memory_kib_per_client", round(statistics.median(grown_kib), 2), KIB_PER_CLIENT_MAX),
    ]


def ratios(rows: list[Row]) -> dict[str, list[float]]:
    """One per repetition. The factor is to a broker that runs and is left alone, so it is more than the gateway's: a
    broker that has just started takes longer by itself."""
    alone, storm, tls = (
        {row["repetition"]: row["all_back_s"] for row in _of(rows, part)} for part in (ALONE, STORM, STORM_TLS)
    )
    running_s = statistics.median(row["seconds"] for row in _of(rows, DIRECT))
    return {
        VS_BOUNCE: [storm[number] / alone[number] for number in storm],
        TLS_VS_BOUNCE: [tls[number] / alone[number] for number in tls],
        FACTOR: [storm[number] / running_s for number in storm],
    }


def summaries(rows: list[Row]) -> Iterator[Row]:
    """The spread of each ratio, and per way where the time goes: medians over the repetitions."""
    for name, found in ratios(rows).items():
        yield {"part": SPREAD, **{key: value for key, value in spread(name, found).items() if key != "what"}}
    for part in (ALONE, STORM, STORM_TLS):
        yield {"part": TIME, "of": part, **_course(_of(rows, part))}


def _course(rows: list[Row]) -> Row:
    """Seconds to the first CONNACK, how fast they come, and what each client costs whom. Where the processors are never
    idle, whoever takes most of them is the bound; where they are, somebody waits. What is neither busy nor idle went to
    other programs."""
    names = ("all_back_s", "first_s", "half_s", "most_s", "connacks_per_s")
    found = {name: _median(rows, name) for name in names}
    spent_s = {who: _median(rows, f"{who}_user_s") + _median(rows, f"{who}_system_s") for who in WORKERS}
    per_client = {f"{who}_us_per_client": round(spent_s[who] / rows[0]["clients"] * 1e6) for who in WORKERS}
    available_s = len(os.sched_getaffinity(0)) * found["all_back_s"]
    shares = {"busy": sum(spent_s.values()), "idle": _median(rows, "idle_s")}
    return {**found, **per_client, **{f"processors_{name}": round(s / available_s, 2) for name, s in shares.items()}}


def _median(rows: list[Row], name: str) -> float:
    """Nothing where nobody has it: without a gateway there is none that takes time."""
    values = [row[name] for row in rows if name in row]
    return float(statistics.median(values)) if values else 0.0


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
