"""From the rows of the gateway benchmark to its checks: ratios within each repetition, then their median."""

import statistics
from typing import Any

from tidegate.report.checks import Check

SENDS, TLS, BATCHES, IDLE, MACHINE, SPREAD = "one publish per send", "TLS", "batches", "idle", "machine", "spread"
DIRECT, HAPROXY, OURS = "direct", "haproxy", "tidegate"
# The kernel may wake a process up so much late by itself. A proxy that adds less than this is not told apart from it,
# and a ratio to less would be one to noise.
ADDED_MS_MIN = 0.05

Row = dict[str, Any]
BARS = {
    "cpu_per_message_vs_haproxy": ("<=", 1.2),
    "added_p99_vs_haproxy": ("<=", 2.0),
    "batched_vs_haproxy": (">=", 0.5),
    "tls_cpu_vs_haproxy": ("<=", 1.6),
}


def ratios(rows: list[Row]) -> dict[str, list[float]]:
    """One ratio per check and repetition."""
    sends, tls, batches = (_by_repetition(rows, part) for part in (SENDS, TLS, BATCHES))
    return {
        "cpu_per_message_vs_haproxy": [_ratio(found, "cpu_us_per_message") for found in sends],
        "added_p99_vs_haproxy": [_added(found, "ack_ms_p99") for found in sends],
        "batched_vs_haproxy": [_ratio(found, "messages_per_s") for found in batches],
        "tls_cpu_vs_haproxy": [_ratio(found, "cpu_us_per_message") for found in tls],
    }


def added_ratio(direct_ms: float, haproxy_ms: float, ours_ms: float) -> float:
    """What we add to the direct way over what HAProxy adds."""
    return max(0.0, ours_ms - direct_ms) / max(ADDED_MS_MIN, haproxy_ms - direct_ms)


def checks(rows: list[Row]) -> list[Check]:
    held = {"<=": Check.at_most, ">=": Check.at_least}
    return [
        held[BARS[name][0]](name, round(statistics.median(found), 3), BARS[name][1])
        for name, found in ratios(rows).items()
    ]


def spreads(rows: list[Row]) -> list[Row]:
    """How far the repetitions are apart."""
    return [
        {
            "part": SPREAD,
            "check": name,
            "lowest": round(min(found), 3),
            "median": round(statistics.median(found), 3),
            "highest": round(max(found), 3),
        }
        for name, found in ratios(rows).items()
    ]


def _by_repetition(rows: list[Row], part: str) -> list[dict[str, Row]]:
    found: dict[int, dict[str, Row]] = {}
    for row in rows:
        if row["part"] == part:
            found.setdefault(row["repetition"], {})[row["through"]] = row
    return list(found.values())


def _ratio(found: dict[str, Row], value: str) -> float:
    return float(found[OURS][value] / found[HAPROXY][value])


def _added(found: dict[str, Row], value: str) -> float:
    return added_ratio(found[DIRECT][value], found[HAPROXY][value], found[OURS][value])
