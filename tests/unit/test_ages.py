"""Ages from a real Delta table that forgets: merged files, a cleaned log, vacuumed files, partitions."""

import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from tidegate.model.errors import TidegateError
from tidegate.pipeline.ages import Ages, delays_s
from tidegate.pipeline.tables.following import LogFollower

STAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("device", pa.string()),
        ("time", STAMP),
        ("count", pa.int64()),
        ("first", STAMP),
        ("last", STAMP),
        ("arrived", STAMP),
        ("date", pa.string()),
    ]
)
TAKEN_S = 1_760_000_000.0
Message = tuple[str, float, int]


def messages(rows: Sequence[Message], day: str = "2026-11-17") -> pa.Table:
    """(device, taken at, readings) of each message, in seconds; several readings were taken over two seconds."""

    def stamp(seconds: float | None) -> int | None:
        return None if seconds is None else round((TAKEN_S + seconds) * 1e6)

    columns = {
        "device": [device for device, _, _ in rows],
        "time": [stamp(at_s) for _, at_s, _ in rows],
        "count": [count for _, _, count in rows],
        "first": [stamp(at_s - 2) if count > 1 else None for _, at_s, count in rows],
        "last": [stamp(at_s) if count > 1 else None for _, at_s, count in rows],
        "arrived": [stamp(at_s + 0.25) for _, at_s, _ in rows],
        "date": [day] * len(rows),
    }
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}, SCHEMA)


class Table:
    """A partitioned table whose commits happen when the test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        configuration = {"delta.logRetentionDuration": "interval 1 seconds"}
        DeltaTable.create(str(path), schema=SCHEMA, partition_by=["date"], configuration=configuration)

    @property
    def handle(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    def append(self, *rows: Message, at_s: float | None = None, day: str = "2026-11-17") -> None:
        write_deltalake(self.handle, messages(rows, day), mode="append")
        self._date(TAKEN_S + at_s if at_s is not None else time.time())

    def compact(self) -> None:
        self.handle.optimize.compact()

    def forget(self) -> None:
        """What a maintainer does: everything merged, the log cleaned up to the checkpoint, old files removed."""
        self.handle.create_checkpoint()
        for file in (self.path / "_delta_log").iterdir():
            os.utime(file, (TAKEN_S, TAKEN_S))
        self.handle.cleanup_metadata()
        self.handle.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)

    def entries(self) -> list[Path]:
        return sorted((self.path / "_delta_log").glob("*.json"))

    def _date(self, at_s: float) -> None:
        os.utime(self.entries()[-1], (at_s, at_s))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "readings")


def found(ages: Ages) -> list[tuple[str, float, float, float, int]]:
    """(device, taken, arrived, committed, count) of each message, in the test's seconds."""
    rows = ages.rows().to_pylist()
    times = ("taken_s", "arrived_s", "committed_s")
    return [(row["device"], *(row[name] - TAKEN_S for name in times), row["count"]) for row in rows]


def test_each_commit_is_taken_in_once_with_its_own_time(table: Table) -> None:
    ages = Ages(table.path)
    ages.follow()
    assert found(ages) == []
    table.append(("pump", 1.0, 1), ("valve", 5.0, 3), at_s=6.0)
    ages.follow()
    table.append(("pump", 7.0, 1), at_s=9.0, day="2026-11-18")
    ages.follow()
    ages.follow()
    first = [("pump", 1.0, 1.25, 6.0, 1), ("valve", 4.0, 5.25, 6.0, 3)]
    assert sorted(found(ages)) == sorted([*first, ("pump", 7.0, 7.25, 9.0, 1)])
    table.append(("other", 8.0, 1), at_s=10.0)
    ages.follow()
    assert [row[0] for row in found(ages)][3:] == ["other"], "rows may be asked for in between"
    assert sorted(delays_s(ages.rows(), skip_s=0)) == [2.0, 2.0, 2.0, 5.0]
    assert sorted(delays_s(ages.rows(), skip_s=3)) == [2.0, 2.0]


def test_nothing_of_a_table_that_forgets_is_missed_or_counted_twice(table: Table) -> None:
    ages = Ages(table.path)
    for second in range(6):
        table.append((f"device-{second}", float(second), 1), at_s=second + 0.5)
        ages.follow()
        if second % 2:
            table.compact()
            ages.follow()
            table.forget()
    assert int(table.entries()[0].stem) > 6, "the log was really cleaned"
    ages.follow()
    assert [(row[0], row[3]) for row in found(ages)] == [(f"device-{n}", n + 0.5) for n in range(6)]


def test_merged_files_bring_nothing_new(table: Table) -> None:
    table.append(("pump", 1.0, 1))
    table.append(("pump", 2.0, 1))
    log, ages = LogFollower(table.path), Ages(table.path)
    table.compact()
    (entry,) = log.follow()
    adds = [action["add"] for action in entry.actions if "add" in action]
    assert [add["dataChange"] for add in adds] == [False]
    assert (len(entry.added()), entry.appended()) == (1, [])
    ages.follow()
    assert found(ages) == []


def test_rows_that_a_deletion_leaves_are_not_new(table: Table) -> None:
    table.append(("pump", 1.0, 1), ("valve", 2.0, 1))
    ages = Ages(table.path)
    table.handle.delete("device = 'pump'")
    assert len(table.handle.to_pyarrow_table()) == 1
    ages.follow()
    assert found(ages) == []


def test_entries_that_are_gone_unseen_are_an_error(table: Table) -> None:
    table.append(("pump", 1.0, 1))
    ages = Ages(table.path)
    for second in range(3):
        table.append(("pump", 2.0 + second, 1))
    table.forget()
    table.append(("pump", 9.0, 1))
    missed = table.entries()[0].parent / f"{2:020d}.json"
    assert not missed.exists()
    with pytest.raises(TidegateError, match=r"^Entry 2 of the log .* was cleaned away before it was read"):
        ages.follow()


def test_a_log_that_is_gone_up_to_its_checkpoint_is_an_error_too(table: Table) -> None:
    ages = Ages(table.path)
    table.append(("pump", 1.0, 1))
    table.handle.create_checkpoint()
    for entry in table.entries():
        entry.unlink()
    with pytest.raises(TidegateError, match=r"^Entry 1 of the log"):
        ages.follow()


def test_a_table_that_was_made_anew_is_an_error(tmp_path: Path) -> None:
    table = Table(tmp_path / "readings")
    table.append(("pump", 1.0, 1))
    ages = Ages(table.path)
    table.path.rename(tmp_path / "old")
    Table(tmp_path / "readings")
    with pytest.raises(TidegateError, match=r"ends at entry 0, although entry 1 was read"):
        ages.follow()


def test_a_file_that_is_gone_unread_is_an_error(table: Table) -> None:
    ages = Ages(table.path)
    table.append(("pump", 1.0, 1))
    for file in table.path.glob("date=*/*.parquet"):
        file.unlink()
    with pytest.raises(TidegateError, match=r"^The file date=2026-11-17/part-.* was removed before"):
        ages.follow()


def test_paths_in_the_log_are_encoded(table: Table) -> None:
    """The protocol encodes them like addresses; on the disk a day with a colon is encoded once itself."""
    ages = Ages(table.path)
    table.append(("pump", 1.0, 1), at_s=2.0, day="17:11 %")
    (add,) = [json.loads(line)["add"] for line in table.entries()[-1].read_text().splitlines() if '"add"' in line]
    assert "%25" in add["path"]
    ages.follow()
    assert found(ages) == [("pump", 1.0, 1.25, 2.0, 1)]


def test_files_that_a_driver_names_are_found(table: Table) -> None:
    ages = Ages(table.path)
    directory = table.path / "date=2026-11-17"
    directory.mkdir()
    rows = messages([("pump", 1.0, 1)])
    pq.write_table(rows.drop_columns(["date"]), directory / "part-1.parquet")
    size = (directory / "part-1.parquet").stat().st_size
    stamp = round(datetime.now(UTC).timestamp() * 1e3)
    add = AddAction("date=2026-11-17/part-1.parquet", size, {"date": "2026-11-17"}, stamp, True, "{}")
    table.handle.create_write_transaction([add], "append", table.handle.schema(), partition_by=["date"])
    ages.follow()
    assert [row[0] for row in found(ages)] == ["pump"]


def test_a_table_that_does_not_exist_yet_is_followed_from_its_first_entry(tmp_path: Path) -> None:
    ages = Ages(tmp_path / "readings")
    ages.follow()
    table = Table(tmp_path / "readings")
    table.append(("pump", 1.0, 1), at_s=2.0)
    ages.follow()
    assert [row[0] for row in found(ages)] == ["pump"]


def test_what_was_there_before_is_not_measured(table: Table) -> None:
    table.append(("pump", 1.0, 1))
    table.forget()
    ages = Ages(table.path)
    table.append(("valve", 2.0, 1))
    ages.follow()
    assert [row[0] for row in found(ages)] == ["valve"]
