"""``tidegate bench demo``: the demo's two acts, several times with each policy, in turns.

One run is one draw from a noisy machine. A verdict is the median over the runs of one policy, its spread beside it;
that nothing is lost or stored twice has to hold in every single one.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from tidegate.demo.performance import Performance
from tidegate.demo.script import Script
from tidegate.demo.verdict import CAPACITY_USED_MIN, DELAY_RATIO_MAX
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.rig.parts import Parts
from tidegate_bench.rig.spreads import spread

POLICIES = ("gotin", "adaptive")
ROUNDS = 5
MEASURED = ("delay_ratio", "capacity_used", "seen_s")
EVERY_TIME = ("ledger_exact", "fleet_kept_schedule")


def run(progress: Progress, out: Path | None, *, rounds: int = ROUNDS) -> Report:
    began_s = time.monotonic()
    parts = Parts(None if out is None else out / "parts")
    rows: list[dict[str, Any]] = []
    for number in range(rounds):
        for policy in POLICIES:
            progress.step(f"run {number + 1} of {rounds} with {policy}")
            rows += parts.done(f"{policy}-{number + 1}", partial(_rows, policy))
    return Report("bench demo", [*rows, *spreads(rows)], checks(rows), round(time.monotonic() - began_s, 1))


def _rows(policy: str) -> list[dict[str, Any]]:
    return [played(policy)]


def played(policy: str) -> dict[str, Any]:
    """One run: what its verdict says, and how long after the flood's beginning the first device was asked to wait."""
    report = performed(policy)
    return {"policy": policy, "seen_s": seen_s(report), **{one.name: one.value for one in report.checks}}


def performed(policy: str, afterwards: Callable[[Path], None] = lambda _: None) -> Report:
    """The demo without a word; ``afterwards`` is called with the installation's directory while everything runs."""
    return Performance(
        Console(stderr=True, quiet=True),
        Script(),
        headless=True,
        controllers=1,
        kill_leader=False,
        picture_file=None,
        policy=policy,
        afterwards=afterwards,
    ).perform()


def seen_s(report: Report) -> float:
    """From the flood's first additional device to the first word to anybody; infinite where nothing was said."""
    act = next(row for row in report.rows if row.get("protected") and "advised_s" in row)
    return float("inf") if act["advised_s"] is None else round(act["advised_s"] - act["flood_from_s"], 2)


def spreads(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [spread(f"{name}[{policy}]", _values(rows, policy, name)) for policy in POLICIES for name in MEASURED]


def checks(rows: list[dict[str, Any]]) -> list[Check]:
    found = []
    for policy in POLICIES:
        delay, used = (statistics.median(_values(rows, policy, name)) for name in ("delay_ratio", "capacity_used"))
        found += [
            Check.at_most(f"delay_ratio[{policy}]", round(delay, 3), DELAY_RATIO_MAX),
            Check.at_least(f"capacity_used[{policy}]", round(used, 3), CAPACITY_USED_MIN),
            *(Check.equal(f"{name}[{policy}]", all(_values(rows, policy, name)), True) for name in EVERY_TIME),
        ]
    return found


def _values(rows: list[dict[str, Any]], policy: str, name: str) -> list[Any]:
    return [row[name] for row in rows if row["policy"] == policy]
