"""The checks of the benchmarks of the loop can fail, each by its own fault."""

from typing import Any

import pytest

from tidegate_bench import calm
from tidegate_bench.audit import run as audit

CALM: list[dict[str, Any]] = [
    {"part": "calm", "held_devices": 0, "withheld": 0},
    {"part": "calm", "held_devices": 0, "withheld": 0},
    {"part": "flood", "seen_s": 2.5},
]
KEPT: list[dict[str, Any]] = [
    {"decisions": 9, "replayed_equal": 1.0, "replayed_changed": 0.4, "bytes_per_day": 1, "bytes_max": 1},
    {"decisions": 7, "replayed_equal": 1.0, "replayed_changed": 0.0, "bytes_per_day": 2, "bytes_max": 2},
]


def broken(rows: list[dict[str, Any]], number: int, **fault: object) -> list[dict[str, Any]]:
    return [{**row, **fault} if at == number else row for at, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("number", "fault", "check"),
    [
        (0, {"held_devices": 3}, "held_calm"),
        (1, {"withheld": 1}, "withheld"),
        (2, {"seen_s": 3.01}, "seen_s"),
        (2, {"seen_s": float("inf")}, "seen_s"),
    ],
)
def test_whoever_is_held_in_calm_or_seen_late_fails(number: int, fault: dict[str, object], check: str) -> None:
    assert all(one.holds for one in calm.checks(CALM))
    assert [one.name for one in calm.checks(broken(CALM, number, **fault)) if not one.holds] == [check]


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ({"decisions": 0}, "decisions"),
        ({"replayed_equal": 0.99}, "replayed_equal"),
        ({"replayed_changed": 1.0}, "replayed_changed"),
        ({"bytes_per_day": 2**30}, "bytes_per_day"),
        ({"bytes_max": 2**30}, "bytes_kept_max"),
    ],
)
def test_one_decision_that_differs_or_a_change_that_shows_nowhere_fails(fault: dict[str, object], check: str) -> None:
    assert all(one.holds for one in audit.checks(KEPT))
    assert [one.name for one in audit.checks(broken(KEPT, 1, **fault)) if not one.holds] == [check]
