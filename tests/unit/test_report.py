"""Checks, tables and progress."""

import io
import json
import time

import numpy as np
import pytest

from tidegate.report.checks import Check, Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.tables import show


def test_checks_hold_at_their_bar_and_never_for_not_a_number() -> None:
    assert Check.at_most("a", 5, 5).holds
    assert not Check.at_most("a", 5.1, 5).holds
    assert Check.at_least("a", 5, 5).holds
    assert not Check.at_least("a", float("nan"), 5).holds
    assert Check.equal("a", True, True) == Check("a", True, "== true", True)


def test_numbers_of_numpy_become_plain_ones() -> None:
    stream = io.StringIO()
    rows = [{"a": np.float64(1.5), "b": np.int64(2), "c": np.array([1, 2])}]
    print_report(Report("n", rows, [Check.at_most("x", np.float64(1.0), 2)], 0.5), as_json=True, stream=stream)
    printed = json.loads(stream.getvalue())
    assert printed["rows"] == [{"a": 1.5, "b": 2, "c": [1, 2]}]
    assert printed["checks"][0]["holds"] is True


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.012345, "0.0123"),
        (12345.6, "12,346"),
        (True, "yes"),
        ("x", "x"),
        (None, "null"),
    ],
)
def test_values_for_people(value: object, text: str) -> None:
    assert show(value) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_prints_lines_by_itself_while_nobody_calls_it() -> None:
    stream = io.StringIO()
    with Progress("bench x", stream, every_s=0.1) as progress:
        progress.step("sorting")
        time.sleep(0.35)
    lines = stream.getvalue().splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("bench x: sorting (") for line in lines)


def test_frequent_updates_print_rarely() -> None:
    stream = io.StringIO()
    with Progress("bench x", stream, every_s=10) as progress:
        for number in range(1000):
            progress.update(f"{number}")
    assert stream.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_cleared_at_the_end() -> None:
    stream = Terminal()
    with Progress("bench x", stream) as progress:
        progress.step("one")
        progress.step("two")
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
