"""Twenty thousand commits as fast as they go, with maintenance on: do they get slower, what do they leave behind?"""

import statistics
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import TABLES
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.tables.tables import Tables
from tidegate.report.progress import Progress
from tidegate_bench.endurance.batches import SLICES, Driver, names
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.maintainers import MaintainerProcess

COMMITS = 20_000
DEVICES_PER_SLICE = 10
LOOK_COMMITS = 50
# As often as a node's default would have it, given that these commits come some seven times as fast.
SETTINGS = {"every_s": "5", "share": "0.25", "log_retention_s": "60"}


def measure(progress: Progress) -> dict[str, Any]:
    limits = MaintenanceSettings()
    with Rig(BrokerSettings(nodes=1, slices=SLICES)) as rig:
        tables = Path(rig.installation.tables)
        driver = Driver(tables, 1)
        maintainer = MaintainerProcess(rig.state, SETTINGS)
        try:
            seconds, seen = _commit(driver, maintainer, tables, progress)
            state = rig.bus.get(TABLES)
        finally:
            maintainer.stop()
            driver.close()
        rows = Tables(tables).readings.handle.to_pyarrow_dataset().count_rows()
    tenth = max(1, COMMITS // 10)
    first, last = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
    return {
        "commits": len(seconds),
        "rows": rows,
        "rows_expected": COMMITS * SLICES * DEVICES_PER_SLICE,
        "commit_s_first_tenth": round(first, 5),
        "commit_s_last_tenth": round(last, 5),
        "commit_growth": round(last / first, 3),
        "log_entries_max": max(entries for entries, _ in seen),
        "log_entries_bound": limits.log_entries_max,
        "active_files_max": max(files for _, files in seen),
        "active_files_bound": limits.active_files_max,
        "maintenance_runs": 0 if state is None else len(state.runs),
        "last_runs": [] if state is None else msgspec.to_builtins(state.runs[-3:]),
    }


def _commit(
    driver: Driver, maintainer: MaintainerProcess, tables: Path, progress: Progress
) -> tuple[list[float], list[tuple[int, int]]]:
    """Seconds of each commit; what there was of log entries and active files, looked at now and then."""
    seconds: list[float] = []
    seen: list[tuple[int, int]] = []
    devices = names(DEVICES_PER_SLICE)
    for number in range(COMMITS):
        seconds.append(driver.commit(driver.task(devices, number)))
        if number % LOOK_COMMITS == 0:
            maintainer.keep_running(progress.step)
            seen.append(_left(tables))
            progress.update(f"commit {number:,} of {COMMITS:,}: {seen[-1][0]:,} log entries, {seen[-1][1]:,} files")
    return seconds, seen


def _left(tables: Path) -> tuple[int, int]:
    """The most that any table has of each."""
    found = []
    for name in ("readings", "means"):
        entries = sum(path.suffix == ".json" for path in (tables / name / "_delta_log").iterdir())
        found.append((entries, _active(tables / name)))
    return max(entries for entries, _ in found), max(files for _, files in found)


def _active(table: Path) -> int:
    from deltalake import DeltaTable  # noqa: PLC0415 - a fresh handle: what any reader finds

    return int(pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).num_rows)
