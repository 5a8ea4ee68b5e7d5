"""A table that nobody maintained for a day: how long maintenance takes to catch up, and what a commit costs then."""

import json
import os
import shutil
import statistics
import time
import uuid
from pathlib import Path
from typing import Any

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import TABLES
from tidegate.model.errors import TidegateError
from tidegate.model.tables import TableHealth, TablesState
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.tables.tables import Tables
from tidegate.report.progress import Progress
from tidegate_bench.endurance.batches import SLICES, Driver, names
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.maintainers import MaintainerProcess
from tidegate_bench.rig.spreads import ratios_of

ENTRIES = 350_000
PAIRS = 150
WARM = 5
PAUSE_S = 0.4  # so that the pairs cover a minute and more, and with it a run of the maintainer
SETTLED_S_MAX = 300.0
LINKS_MAX = 30_000
DEVICES_PER_SLICE = 10
CATCH_UP_S_MAX = 3_600.0


def measure(progress: Progress) -> dict[str, Any]:
    with Rig(BrokerSettings(nodes=1, slices=SLICES)) as rig:
        aged = Path(rig.installation.tables)
        rows = _grow(aged, progress)
        found = len(list((aged / "readings" / "_delta_log").glob("*.json")))
        maintainer = MaintainerProcess(rig.state, {"every_s": "5", "share": "1", "log_retention_s": "60"})
        try:
            catch_up_s = _await_health(rig, maintainer, progress)
        finally:
            maintainer.stop()
        # From then on it is looked after as every table is: with the settings that are shipped.
        maintainer = MaintainerProcess(rig.state, {})
        try:
            _await_run(rig, progress)
            old, new = _compare(aged, rig.state / "fresh", progress)
        finally:
            maintainer.stop()
        kept = Tables(aged).readings.handle.to_pyarrow_dataset().count_rows()
    if kept != rows + (PAIRS + WARM) * SLICES * DEVICES_PER_SLICE:
        raise TidegateError(f"The table had {rows} rows and has {kept} after maintenance: something was lost.")
    return {
        "log_entries": found,
        "rows": rows,
        "catch_up_s": round(catch_up_s, 1),
        "commit_aged_s": round(statistics.median(old), 4),
        "commit_fresh_s": round(statistics.median(new), 4),
        **ratios_of("aged_vs_fresh", old, new),
    }


def _grow(directory: Path, progress: Progress) -> int:
    """Real entries of real commits: one is made, and repeated with its own file, offsets and version each time."""
    driver = Driver(directory, 1)
    driver.commit(driver.task(names(DEVICES_PER_SLICE), 0))
    driver.close()
    table = directory / "readings"
    log = table / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json"))
    actions = [json.loads(line) for line in (log / f"{version:020d}.json").read_text().splitlines()]
    adds = [action["add"]["path"] for action in actions if "add" in action]
    for number in range(ENTRIES):
        if number % LINKS_MAX == LINKS_MAX - 1:
            _renew(table, adds)
        _repeat(table, actions, adds, version + 1 + number)
        if number % 5_000 == 0:
            progress.update(f"{number:,} of {ENTRIES:,} log entries")
    return (ENTRIES + 1) * SLICES * DEVICES_PER_SLICE


def _renew(table: Path, adds: list[str]) -> None:
    """A file may have only so many names: go on with a copy."""
    for path in adds:
        copy = table / f"{path}.copy"
        shutil.copyfile(table / path, copy)
        copy.replace(table / path)


def _repeat(table: Path, actions: list[dict[str, Any]], adds: list[str], version: int) -> None:
    lines = []
    renamed = {path: f"{path.rsplit('/', 1)[0]}/part-{uuid.uuid4()}.parquet" for path in adds}
    for path, name in renamed.items():
        os.link(table / path, table / name)
    for action in actions:
        changed = action
        if "add" in action:
            changed = {"add": {**action["add"], "path": renamed[action["add"]["path"]]}}
        lines.append(json.dumps(changed))
    (table / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines))


def _await_health(rig: Rig, maintainer: MaintainerProcess, progress: Progress) -> float:
    limits = MaintenanceSettings()
    started_s = time.monotonic()
    while True:
        state = rig.bus.get(TABLES)
        health = None if state is None else state.tables.get("readings")
        if state is not None and health is not None and _is_well(state, health, limits):
            return time.monotonic() - started_s
        if time.monotonic() - started_s > CATCH_UP_S_MAX:
            raise TidegateError(f"Maintenance has not caught up within {CATCH_UP_S_MAX:.0f} s: {health}.")
        maintainer.keep_running(progress.step)
        progress.update(f"maintenance catches up: {_said(health)}")
        time.sleep(0.5)


def _await_run(rig: Rig, progress: Progress) -> None:
    """Until the maintainer that has just been started has looked at the tables once, as one that runs for long has."""
    started_s, unix_s = time.monotonic(), time.time()
    while True:
        state = rig.bus.get(TABLES)
        if state is not None and any(run.table == "readings" and run.at_s > unix_s for run in state.runs):
            return
        if time.monotonic() - started_s > SETTLED_S_MAX:
            raise TidegateError(f"The maintainer has not looked at the table within {SETTLED_S_MAX:.0f} s.")
        progress.update("the maintainer with the settings that are shipped looks at the table")
        time.sleep(0.5)


def _is_well(state: TablesState, health: TableHealth, limits: MaintenanceSettings) -> bool:
    """Within its bounds, and the last run over it found nothing to merge any more."""
    bounded = health.log_entries <= limits.log_entries_max and health.active_files <= limits.active_files_max
    last = next((run for run in reversed(state.runs) if run.table == "readings"), None)
    return bounded and last is not None and last.files_merged == 0 and last.problem is None


def _said(health: TableHealth | None) -> str:
    return (
        "it has said nothing yet"
        if health is None
        else f"{health.log_entries:,} entries, {health.active_files:,} files"
    )


def _compare(aged: Path, fresh: Path, progress: Progress) -> tuple[list[float], list[float]]:
    """Seconds per commit to both, in turn."""
    drivers = {"aged": Driver(aged, 2), "fresh": Driver(fresh, 2)}
    seconds: dict[str, list[float]] = {"aged": [], "fresh": []}
    for pair in range(PAIRS + WARM):
        progress.update(f"commit {pair + 1} of {PAIRS + WARM} to both")
        for which, driver in drivers.items():
            seconds[which].append(driver.commit(driver.task(names(DEVICES_PER_SLICE), 1_000_000 + pair)))
        time.sleep(PAUSE_S)
    for driver in drivers.values():
        driver.close()
    # The first ones open tables and load what they must know.
    return seconds["aged"][WARM:], seconds["fresh"][WARM:]
