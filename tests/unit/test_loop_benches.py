"""The checks of the benchmarks of the loop can fail, each by its own fault."""

from typing import Any

import pytest

from tidegate_bench.audit import run as audit

KEPT: list[dict[str, Any]] = [
    {"decisions": 9, "replayed_equal": 1.0, "replayed_changed": 0.4, "bytes_per_day": 1, "bytes_max": 1},
    {"decisions": 7, "replayed_equal": 1.0, "replayed_changed": 0.0, "bytes_per_day": 2, "bytes_max": 2},
]


def broken(rows: list[dict[str, Any]], number: int, **fault: object) -> list[dict[str, Any]]:
    return [{**row, **fault} if at == number else row for at, row in enumerate(rows)]


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
