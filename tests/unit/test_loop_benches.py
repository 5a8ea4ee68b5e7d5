"""The checks of the benchmarks of the loop can fail, each by its own fault."""

from typing import Any

import pytest

from tidegate_bench import calm, demos
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


PLAYED: list[dict[str, Any]] = [
    {"policy": policy, "seen_s": 2.0, "delay_ratio": ratio, "capacity_used": used, "ledger_exact": True,
     "fleet_kept_schedule": True}
    for ratio, used in ((0.1, 1.0), (0.15, 0.95), (0.3, 0.8))
    for policy in demos.POLICIES
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "fault", "check"),
    [
        (2, {"delay_ratio": 0.21}, "delay_ratio[gotin]"),
        (3, {"capacity_used": 0.89}, "capacity_used[adaptive]"),
        (4, {"ledger_exact": False}, "ledger_exact[gotin]"),
        (5, {"fleet_kept_schedule": False}, "fleet_kept_schedule[adaptive]"),
    ],
)
def test_a_median_that_falls_short_or_one_run_that_loses_something_fails(
    number: int, fault: dict[str, object], check: str
) -> None:
    assert all(one.holds for one in demos.checks(PLAYED))
    assert [one.name for one in demos.checks(broken(PLAYED, number, **fault)) if not one.holds] == [check]


def test_the_spread_of_every_figure_is_shown_for_each_policy() -> None:
    shown = {row["check"]: (row["lowest"], row["median"], row["highest"]) for row in demos.spreads(PLAYED)}
    assert shown["delay_ratio[gotin]"] == (0.1, 0.15, 0.3)
    assert len(shown) == len(demos.POLICIES) * len(demos.MEASURED)
