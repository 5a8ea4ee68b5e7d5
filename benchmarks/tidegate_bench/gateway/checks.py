"""From the rows of the gateway benchmark to its checks: ratios within each repetition, then their median.

What is added to the slowest percent is the exception: the 99th percentile of one repetition hangs on thirty probes, and
one hiccup of the machine makes it a hundred times as long. There the probes of all repetitions are one sample.
"""

import statistics
from typing import Any

from tidegate.report.checks import Check

SENDS, TLS, BATCHES, IDLE, MACHINE, SPREAD = "one publish per send", "TLS", "batches", "idle", "machine", "spread"
POOLED = "all probes"
DIRECT, HAPROXY, FORWARDER, OURS = "direct", "haproxy", "forwarder", "tidegate"
# The kernel may wake a process up so much late by itself. A proxy that adds less than this is not told apart from it,
# and a ratio to less would be one to noise.
ADDED_MS_MIN = 0.05

Row = dict[str, Any]
ADDED = "added_p99_vs_haproxy"
BARS = {
    "cpu_per_message_vs_haproxy": ("<=", 1.2),
    "cpu_vs_forwarder": ("<=", 1.12),
    ADDED: ("<=", 1.5),
    "batched_vs_haproxy": (">=", 0.75),
    "tls_cpu_vs_haproxy": ("<=", 1.45),
}


def ratios(rows: list[Row]) -> dict[str, list[float]]:
    """One ratio per check and repetition."""
    sends, tls, batches = (_by_repetition(rows, part) for part in (SENDS, TLS, BATCHES))
    return {
        "cpu_per_message_vs_haproxy": [_ratio(found, "cpu_us_per_message") for found in sends],
        "cpu_vs_forwarder": [_ratio(found, "cpu_us_per_message", FORWARDER) for found in sends],
        ADDED: [_added(found, "ack_ms_p99") for found in sends],
        "batched_vs_haproxy": [_ratio(found, "messages_per_s") for found in batches],
        "tls_cpu_vs_haproxy": [_ratio(found, "cpu_us_per_message") for found in tls],
    }


def added_ratio(direct_ms: float, haproxy_ms: float, ours_ms: float) -> float:
    """What we add to the direct way over what HAProxy adds."""
    return max(0.0, ours_ms - direct_ms) / max(ADDED_MS_MIN, haproxy_ms - direct_ms)


def checks(rows: list[Row]) -> list[Check]:
    values = {name: statistics.median(found) for name, found in ratios(rows).items()}
    values[ADDED] = _added({row["through"]: row for row in rows if row["part"] == POOLED}, "ack_ms_p99")
    held = {"<=": Check.at_most, ">=": Check.at_least}
    return [held[direction](name, round(values[name], 3), bar) for name, (direction, bar) in BARS.items()]


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


def _ratio(found: dict[str, Row], value: str, peer: str = HAPROXY) -> float:
    return float(found[OURS][value] / found[peer][value])


def _added(found: dict[str, Row], value: str) -> float:
    return added_ratio(found[DIRECT][value], found[HAPROXY][value], found[OURS][value])
