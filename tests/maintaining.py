"""Tables that tests of maintenance begin with: written as nodes write them, small."""

import os
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidegate.pipeline.maintenance.care import Care
from tidegate.pipeline.maintenance.pacing import Pace
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.tables.tables import LogTable, Step
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.parsing import READINGS

STAMP = pa.timestamp("us", tz="UTC")
TODAY = datetime.now(UTC).date()
SLICES = 4


def stamp_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp() * 1e6)


def readings(slice_: int, after: int, to: int, day: date = TODAY) -> pa.Table:
    """One row per offset, each value telling its place, devices in no order."""
    places = range(after + 1, to + 1)
    columns: dict[str, Any] = {name: pa.nulls(to - after, READINGS.field(name).type) for name in READINGS.names}
    stamps = pa.array([stamp_us(day) + place for place in places], pa.int64()).cast(STAMP)
    devices = [f"device-{place * 7 % 11}" for place in places]
    columns |= {
        "slice": pa.array([slice_] * len(places), pa.int32()),
        "offset": pa.array(places, pa.int64()),
        "device": pa.array(devices),
        "identified": pa.array([place % 5 != 0 for place in places]),
        "boot": pa.array([None if place % 5 == 0 else 1 for place in places], pa.int64()),
        "seq": pa.array([None if place % 5 == 0 else place for place in places], pa.int64()),
        "time": stamps,
        "value": pa.array([slice_ * 1e6 + place for place in places]),
        "count": pa.array([1] * len(places), pa.int64()),
        "arrived": stamps,
        "topic": pa.array([f"telemetry/{device}" for device in devices]),
    }
    return pa.table(columns, schema=READINGS)


class Writer:
    """A node's way into the readings' table."""

    def __init__(self, directory: Path, epoch: int = 1) -> None:
        self.table = LogTable(directory, "readings")
        self.offsets = self.table.claim(dict.fromkeys(range(SLICES), epoch))
        self.epoch = epoch
        self.settings = TaskSettings(directory, 60, 0.0, False)

    def write(self, rows: int = 5, day: date = TODAY) -> None:
        """One commit: a file with so many rows of every slice."""
        parts = [readings(slice_, self.offsets[slice_], self.offsets[slice_] + rows, day) for slice_ in range(SLICES)]
        steps = {slice_: Step(self.epoch, after, after + rows) for slice_, after in self.offsets.items()}
        self.table.commit(write_by_date(self.settings, "readings", pa.concat_tables(parts)), steps)
        self.offsets = {slice_: step.to for slice_, step in steps.items()}


def care(directory: Path, **changed: Any) -> Care:
    """A maintainer's hands on the readings, that do not rest."""
    settings = MaintenanceSettings(**{"merge_files_min": 4, **changed})
    return Care(MaintainedTable(directory, "readings"), settings, Pace(1.0))


def compacted(directory: Path, **changed: Any) -> int:
    """Merges while there is anything to merge, and says how many files that were."""
    hands = care(directory, **changed)
    while hands.compact():
        pass
    return hands.done.files_merged


def stored(directory: Path, table: str = "readings") -> list[dict[str, Any]]:
    """Every row that any Delta reader sees, in one order."""
    rows = DeltaTable(str(directory / table)).to_pyarrow_table()
    return rows.sort_by([("slice", "ascending"), ("offset", "ascending")]).to_pylist()


def data_files(directory: Path) -> set[str]:
    found = (directory / "readings").rglob("*.parquet")
    return {str(path.relative_to(directory / "readings")) for path in found if "_delta_log" not in path.parts}


def active(directory: Path) -> set[str]:
    return set(pa.table(DeltaTable(str(directory / "readings")).get_add_actions())["path"].to_pylist())


def make_old(directory: Path, hours: float = 2.0) -> None:
    """As if all files that are there now had been written long ago."""
    then_s = time.time() - hours * 3_600
    for path in (directory / "readings").rglob("*"):
        os.utime(path, (then_s, then_s))


def days_ago(days: int) -> date:
    return TODAY - timedelta(days=days)
