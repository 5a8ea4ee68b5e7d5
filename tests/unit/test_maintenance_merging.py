"""Files that are merged: a Delta reader sees the same rows, in fewer files and in order."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from maintaining import SLICES, Writer, active, care, compacted, data_files, readings, stored
from tidegate.model.errors import FencedError, TidegateError
from tidegate.pipeline.maintenance import merging, output
from tidegate.pipeline.maintenance.care import Care
from tidegate.pipeline.maintenance.pacing import Pace, Stopped
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.tables.tables import LogTable, Step
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import REJECTED


def test_a_reader_sees_the_same_rows_in_fewer_files(writer: Writer, directory: Path) -> None:
    before = stored(directory)
    assert compacted(directory) == 10
    assert stored(directory) == before
    assert len(active(directory)) == 1
    writer.write()
    assert len(stored(directory)) == len(before) + 5 * SLICES


def test_positions_and_epochs_survive(writer: Writer, directory: Path) -> None:
    compacted(directory)
    taker = LogTable(directory, "readings")
    assert taker.claim(dict.fromkeys(range(SLICES), 2)) == writer.offsets
    with pytest.raises(FencedError):
        writer.write()


def test_rows_are_sorted_so_that_look_ups_skip(writer: Writer, directory: Path) -> None:
    compacted(directory)
    (path,) = active(directory)
    file = pq.ParquetFile(directory / "readings" / path)
    rows = file.read(["slice", "device", "boot", "seq"])
    names = ("slice", "device", "boot", "seq")
    assert rows.to_pylist() == rows.sort_by([(name, "ascending") for name in names]).to_pylist()
    assert len(file.metadata.row_group(0).sorting_columns) == len(names)
    found = LogTable(directory, "readings").rows(["offset"], 2, 17, 23)
    assert sorted(found["offset"].to_pylist()) == [18, 19, 20, 21, 22, 23]
    by_device = DeltaTable(str(directory / "readings")).to_pyarrow_table(filters=[("device", "=", "device-3")])
    assert by_device.num_rows == sum(row["device"] == "device-3" for row in stored(directory))


@pytest.mark.parametrize(
    ("rows_per_file", "held"),
    [
        pytest.param((20, 1_000), [(0, 0, 50), (1, 1, 50), (2, 2, 50), (3, 3, 50)], id="much data: one slice a file"),
        pytest.param((80, 1_000), [(0, 1, 100), (2, 3, 100)], id="less: two of them"),
        pytest.param((1_000, 2_000), [(0, 3, 200)], id="little: one file"),
        pytest.param((20, 45), [(0, 0, 45), (0, 1, 45), (1, 2, 45), (2, 3, 45), (3, 3, 20)], id="too much for one"),
    ],
)
def test_files_end_with_their_slice_once_they_are_large_enough(
    writer: Writer,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_per_file: tuple[int, int],
    held: list[tuple[int, int, int]],
) -> None:
    monkeypatch.setattr(output, "GROUP_ROWS", 16)
    monkeypatch.setattr(merging, "rows_per_file", lambda *_: rows_per_file)
    before = stored(directory)
    hands = care(directory)
    assert hands.compact()
    assert stored(directory) == before
    assert sorted((file.low, file.high, file.rows) for file in hands.table.files()) == held
    largest = max(
        pq.ParquetFile(directory / "readings" / path).metadata.row_group(0).num_rows for path in active(directory)
    )
    assert largest == 16


def test_means_and_rejects_have_their_own_order(directory: Path) -> None:
    settings = TaskSettings(directory, 60, 0.0, False)
    means, rejected = LogTable(directory, "means"), LogTable(directory, "rejected")
    for table in (means, rejected):
        table.claim({0: 1})
    for number in range(6):
        step = {0: Step(1, number * 9, number * 9 + 9)}
        rows = readings(0, number * 9, number * 9 + 9)
        means.commit(write_by_date(settings, "means", partials(rows, 60)), step)
        columns = {name: rows[name] for name in ("slice", "offset", "topic", "arrived")}
        columns |= {"reason": pa.array(["why"] * 9), "payload": pa.array([b"x\x00"] * 9, pa.binary())}
        columns |= {"payload_bytes": pa.array(range(9), pa.int64())}
        rejects = pa.table([columns[name] for name in REJECTED.names], schema=REJECTED)
        rejected.commit(write_by_date(settings, "rejected", rejects), step)
    order = {"means": [("device", "ascending"), ("arrived", "ascending")], "rejected": [("offset", "ascending")]}
    for name, by in order.items():
        before = DeltaTable(str(directory / name)).to_pyarrow_table().sort_by(by).to_pylist()
        hands = Care(MaintainedTable(directory, name), MaintenanceSettings(merge_files_min=4), Pace(1.0))
        assert hands.compact()
        assert not hands.compact()
        assert DeltaTable(str(directory / name)).to_pyarrow_table().sort_by(by).to_pylist() == before
        assert hands.health().active_files == 1


def test_a_file_from_before_a_column_existed_has_nulls_there(writer: Writer, directory: Path) -> None:
    table = DeltaTable(str(directory / "readings"))
    table.alter.add_columns([Field("later", PrimitiveType("string"), nullable=True)])
    compacted(directory)
    assert {row["later"] for row in stored(directory)} == {None}
    assert len(stored(directory)) == 10 * 5 * SLICES


def test_a_merge_that_would_change_the_number_of_rows_is_refused(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = merging._whole
    monkeypatch.setattr(merging, "_whole", lambda *arguments: whole(*arguments).slice(1))
    before, files = stored(directory), data_files(directory)
    with pytest.raises(TidegateError, match="made 199 rows of 200"):
        care(directory).compact()
    assert stored(directory) == before
    assert data_files(directory) == files


def test_a_full_disk_is_said_before_it_is_full(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.pipeline.maintenance.care.RESERVE_BYTES", 1 << 60)
    with pytest.raises(TidegateError, match="no room to merge"):
        care(directory).compact()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Stopped, Stopped),
        (KeyboardInterrupt, KeyboardInterrupt),
        (OSError, TidegateError),
        (MemoryError, TidegateError),
    ],
)
def test_a_merge_that_is_broken_off_leaves_the_table_and_no_file(
    writer: Writer, directory: Path, error: type[BaseException], raised: type[BaseException]
) -> None:
    before, files = stored(directory), data_files(directory)
    hands = care(directory)

    def broken() -> None:
        raise error

    hands.pace.between = broken
    with pytest.raises(raised):
        hands.compact()
    assert stored(directory) == before
    assert data_files(directory) == files
