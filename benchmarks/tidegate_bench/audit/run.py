"""A demo's decisions, each made again from the audit alone, in a process that has seen nothing else.

With one parameter of the policy changed some of them must come out otherwise, or the comparison would compare nothing.
What the audit takes a day is what the demo's flood took, as if it lasted: floods are what decisions come from.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT, EVENTS, ROUNDS, Journal
from tidegate.bus.installation import load_installation
from tidegate.bus.jetstream import ask
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.demos import performed

JOURNALS: tuple[Journal[Any], ...] = (AUDIT, ROUNDS, EVENTS)
POLICIES = {"gotin": "k_protect=0.5", "adaptive": "utilisation=0.5"}
DAY_S = 86_400.0
KEPT_MAX = 400 * 1024**2


def run(progress: Progress, out: Path | None) -> Report:  # noqa: ARG001 - nothing is left behind
    began_s = time.monotonic()
    rows = [_measured(policy, changed, progress) for policy, changed in POLICIES.items()]
    return Report("audit", rows, checks(rows), round(time.monotonic() - began_s, 1))


def _measured(policy: str, changed: str, progress: Progress) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": policy, "changed": changed}

    def look(state: Path) -> None:
        progress.step(f"the decisions of {policy}, made again")
        same, other, sizes = _again(state), _again(state, changed), _sizes(state)
        row.update(
            decisions=same["decisions"],
            by=same["by"],
            replayed_equal=_share(same),
            replayed_changed=_share(other),
            differs=same["differs"],
            bytes=sizes,
            bytes_per_day=round(sum(sizes.values()) / max(same["span_s"], 1.0) * DAY_S),
            bytes_max=sum(journal.bytes_max or 0 for journal in JOURNALS),
        )

    progress.step(f"the demo with the policy {policy}")
    performed(policy, look)
    return row


def _sizes(state: Path) -> dict[str, int]:
    """What the journals take on the disk."""
    with Bus(load_installation(state).control_urls) as bus:
        infos = [ask(bus.wire, f"STREAM.INFO.{journal.stream}", None) for journal in JOURNALS]
    return {journal.stream: int(info["state"]["bytes"]) for journal, info in zip(JOURNALS, infos, strict=True)}


def _again(state: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tidegate_bench.audit.again", str(state), *options]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=600).stdout)
    return found


def _share(found: dict[str, Any]) -> float:
    return round(found["equal"] / found["decisions"], 4) if found["decisions"] else 0.0


def checks(rows: list[dict[str, Any]]) -> list[Check]:
    return [
        Check.at_least("decisions", min(row["decisions"] for row in rows), 1),
        Check.equal("replayed_equal", min(row["replayed_equal"] for row in rows), 1.0),
        Check.below("replayed_changed", max(row["replayed_changed"] for row in rows), 1.0),
        # A day of nothing but the demo, a flood every half minute, fits. What is kept is bounded all the same, and the
        # audit says since when it is whole.
        Check.at_most("bytes_per_day", max(row["bytes_per_day"] for row in rows), KEPT_MAX),
        Check.at_most("bytes_kept_max", max(row["bytes_max"] for row in rows), KEPT_MAX),
    ]
