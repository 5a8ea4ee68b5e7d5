"""All parts of ``tidegate bench endurance``. Each may take minutes; with ``--out`` a part that is done is kept.

* ``commits``: 20,000 commits with maintenance on.
* ``aged``: a table of 350,000 log entries that was never maintained.
* ``takeover``: a slice of a table of 10^8 rows changes hands.
* ``identities``: a million devices.
* ``live``: 20 minutes of the whole path at 1,000 messages a second, with maintenance.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.endurance import aged, commits, known, live, takeover
from tidegate_bench.rig.parts import Parts

Part = Callable[[Progress], dict[str, Any]]

PARTS: dict[str, Part] = {
    "identities": known.measure,
    "takeover": takeover.measure,
    "commits": commits.measure,
    "aged": aged.measure,
    "live": live.measure,
}
MAINTENANCE_RUNS_MIN = 10


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    kept = Parts(None if out is None else out / "parts")
    rows = [row for name, part in PARTS.items() for row in kept.done(name, partial(_do, name, part, progress))]
    return Report("bench endurance", rows, _checks(rows), round(time.monotonic() - started_s, 1))


def _do(name: str, part: Part, progress: Progress) -> list[dict[str, Any]]:
    progress.step(f"Part {name}.")
    return [{"part": name, **part(progress)}]


def _checks(rows: list[dict[str, Any]]) -> list[Check]:
    of = {row["part"]: row for row in rows}
    commits_, aged_, live_ = of["commits"], of["aged"], of["live"]
    return [
        Check.at_least("commits", commits_["commits"], commits.COMMITS),
        Check.equal("rows_kept", commits_["rows"] == commits_["rows_expected"], True),
        Check.at_most("commit_growth", commits_["commit_growth"], 1.2),
        Check.at_most("log_entries_max", commits_["log_entries_max"], commits_["log_entries_bound"]),
        Check.at_most("active_files_max", commits_["active_files_max"], commits_["active_files_bound"]),
        Check("catch_up_s", aged_["catch_up_s"], "stated", True),
        Check.at_most("aged_vs_fresh", aged_["aged_vs_fresh"], 1.5),
        Check.at_most("takeover_aged_ratio", of["takeover"]["takeover_aged_ratio"], 1.5),
        Check.at_least("maintenance_runs", live_["maintenance_runs"], MAINTENANCE_RUNS_MIN),
        Check.at_most("maintenance_delay_ratio", live_["maintenance_delay_ratio"], 1.5),
        Check.at_most("identity_bytes_per_device", of["identities"]["identity_bytes_per_device"], 64),
        Check.at_most("cold_batch_ratio", of["identities"]["cold_batch_ratio"], 3),
    ]
