"""Positions and fences in the table's own log: who may commit, and who is too late."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidegate.model.errors import FencedError
from tidegate.pipeline.tables.tables import LogTable, Position, Step, Tables
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.parsing import READINGS


def readings(slice_: int, after: int, to: int) -> pa.Table:
    count = to - after
    stamp = pa.array([0] * count, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    columns = {name: pa.nulls(count, READINGS.field(name).type) for name in READINGS.names}
    columns |= {
        "slice": pa.array([slice_] * count, pa.int32()),
        "offset": pa.array(range(after + 1, to + 1), pa.int64()),
        "device": pa.array(["d"] * count),
        "identified": pa.array([True] * count),
        "boot": pa.array([1] * count, pa.int64()),
        "seq": pa.array(range(after + 1, to + 1), pa.int64()),
        "time": stamp,
        "value": pa.array([1.0] * count),
        "count": pa.array([1] * count, pa.int64()),
        "arrived": stamp,
        "topic": pa.array(["telemetry/d"] * count),
    }
    return pa.table(columns, schema=READINGS)


def commit(table: LogTable, slice_: int, step: Step) -> None:
    settings = TaskSettings(table.path.parent, 60, 0.0, False)
    _ = table.handle
    table.commit(write_by_date(settings, "readings", readings(slice_, step.after, step.to)), {slice_: step})


def stored(directory: Path) -> list[int]:
    return sorted(DeltaTable(str(directory / "readings")).to_pyarrow_table()["offset"].to_pylist())


def test_an_untouched_slice_is_claimed_at_zero(directory: Path) -> None:
    table = LogTable(directory, "readings")
    assert table.claim({3: 1}) == {3: 0}
    assert table.position(3) == Position(1, 0)


def test_commits_advance_the_slice_and_a_successor_goes_on_from_there(directory: Path) -> None:
    first, second = LogTable(directory, "readings"), LogTable(directory, "readings")
    first.claim({0: 1})
    commit(first, 0, Step(1, 0, 5))
    assert second.claim({0: 2}) == {0: 5}
    commit(second, 0, Step(2, 5, 8))
    assert stored(directory) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_node_that_lost_its_slice_can_add_nothing_even_before_its_successor_wrote(directory: Path) -> None:
    zombie, taker = LogTable(directory, "readings"), LogTable(directory, "readings")
    zombie.claim({0: 1})
    assert taker.claim({0: 2}) == {0: 0}
    with pytest.raises(FencedError, match="Slice 0 of readings is at epoch 2, offset 0"):
        commit(zombie, 0, Step(1, 0, 5))
    assert stored(directory) == []


def test_a_node_frozen_between_looking_and_writing_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zombie, taker = LogTable(directory, "readings"), LogTable(directory, "readings")
    zombie.claim({0: 1})
    attempt = zombie._try_commit

    def frozen_meanwhile(*arguments: object) -> bool:
        taker.claim({0: 2})
        return attempt(*arguments)

    monkeypatch.setattr(zombie, "_try_commit", frozen_meanwhile)
    with pytest.raises(FencedError):
        commit(zombie, 0, Step(1, 0, 5))
    assert stored(directory) == []


def test_the_same_range_is_not_committed_twice(directory: Path) -> None:
    table, again = LogTable(directory, "readings"), LogTable(directory, "readings")
    table.claim({0: 1})
    commit(table, 0, Step(1, 0, 5))
    commit(again, 0, Step(1, 0, 5))  # an attempt whose answer was lost: done already
    assert stored(directory) == [1, 2, 3, 4, 5]
    with pytest.raises(FencedError):
        commit(again, 0, Step(1, 3, 9))


def test_a_range_that_leaves_a_gap_is_refused(directory: Path) -> None:
    table = LogTable(directory, "readings")
    table.claim({0: 1})
    with pytest.raises(FencedError):
        commit(table, 0, Step(1, 2, 5))


def test_foreign_slices_do_not_disturb_each_other(directory: Path) -> None:
    first, second = LogTable(directory, "readings"), LogTable(directory, "readings")
    first.claim({0: 1})
    second.claim({1: 1})
    for round_ in range(5):
        commit(first, 0, Step(1, round_ * 2, round_ * 2 + 2))
        commit(second, 1, Step(1, round_ * 3, round_ * 3 + 3))
    assert len(stored(directory)) == 25


def test_a_claim_below_the_recorded_epoch_gets_nothing(directory: Path) -> None:
    tables, late = Tables(directory), Tables(directory)
    assert tables.claim({0: 5, 1: 5}) == {0: 0, 1: 0}
    assert late.claim({0: 4, 1: 6}) == {1: 0}


def test_rows_of_a_range_come_from_the_files_that_hold_them(directory: Path) -> None:
    table = LogTable(directory, "readings")
    table.claim({0: 1, 1: 1})
    for after in range(0, 50, 10):
        commit(table, 0, Step(1, after, after + 10))
        commit(table, 1, Step(1, after, after + 10))
    assert sorted(table.rows(["offset"], 0, 17, 23)["offset"].to_pylist()) == [18, 19, 20, 21, 22, 23]
    assert table.rows(["offset"], 0, 23, 23).num_rows == 0
    assert table.rows(["offset"], 7, 0, 50).num_rows == 0


def test_readers_that_filter_by_any_column_find_their_rows(directory: Path) -> None:
    table = LogTable(directory, "readings")
    table.claim({0: 1})
    commit(table, 0, Step(1, 0, 3))
    found = DeltaTable(str(table.path)).to_pyarrow_table(
        filters=[("device", "=", "d"), ("seq", ">=", 2), ("boot", "=", 1)]
    )
    assert found.num_rows == 2
    assert DeltaTable(str(table.path)).to_pyarrow_table(filters=[("device", "=", "other")]).num_rows == 0
