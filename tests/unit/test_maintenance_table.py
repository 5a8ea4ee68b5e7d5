"""What maintenance does to a real table, against what a Delta reader sees before and after."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from maintaining import SLICES, TODAY, Writer, active, care, data_files, days_ago, make_old, readings, stored
from tidegate.model.errors import FencedError, TidegateError, UserError
from tidegate.pipeline.maintenance import log, merging
from tidegate.pipeline.maintenance.care import Care
from tidegate.pipeline.maintenance.keys import KEYS
from tidegate.pipeline.maintenance.pacing import Pace, Stopped
from tidegate.pipeline.maintenance.planning import DataFile, Limits
from tidegate.pipeline.maintenance.settings import MaintenanceSettings, check_retention
from tidegate.pipeline.maintenance.table import EPOCH, MaintainedTable
from tidegate.pipeline.tables import groups
from tidegate.pipeline.tables.tables import LogTable, Step
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import REJECTED
from tidegate.settings.tree import load


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def writer(directory: Path) -> Writer:
    made = Writer(directory)
    for _ in range(10):
        made.write()
    return made


def compacted(directory: Path, **changed: object) -> int:
    hands = care(directory, **changed)
    while hands.compact():
        pass
    return hands.done.files_merged


# -- compaction


def test_a_reader_sees_the_same_rows_in_fewer_files(writer: Writer, directory: Path) -> None:
    before = stored(directory)
    assert compacted(directory) == 10
    assert stored(directory) == before
    assert len(active(directory)) == 1
    writer.write()
    assert len(stored(directory)) == len(before) + 5 * SLICES


def test_rows_that_are_large_only_in_memory_are_counted_as_such(directory: Path) -> None:
    writer = Writer(directory)
    large = pa.array(["x" * 60_000] * 500)
    rows = readings(0, 0, 500)
    rows = rows.set_column(rows.schema.get_field_index("extra"), rows.schema.field("extra"), large)
    (add,) = write_by_date(writer.settings, "readings", rows)
    key = ("slice", "device", "boot", "seq")
    (source,) = open_sources_of(directory, add.path, key)
    assert add.size < 100_000
    assert source.footprint > large.nbytes
    assert max(group.memory for group in source.groups) <= groups.GROUP_BYTES
    limits = Limits(bytes_min=1 << 20, bytes_max=1 << 28, files_min=2)
    how = merging.Merging(directory / "readings", rows.schema, key, 10_000_000, limits, False, lambda: None)
    assert merging._whole(how, [source.file]) is None, "it does not fit, whatever its size on the disk says"
    _, (merged_add,) = merging.merge(how, [source.file])
    (merged,) = open_sources_of(directory, merged_add.path, key)
    assert merged.is_sorted
    assert sum(group.memory for group in merged.groups) > large.nbytes
    assert merged.footprint <= groups.GROUP_BYTES
    assert sum(merged.read(group).num_rows for group in merged.groups) == 500


def open_sources_of(directory: Path, path: str, key: tuple[str, ...]) -> list[merging.Source]:
    size = (directory / "readings" / path).stat().st_size
    return merging.open_sources(directory / "readings", [DataFile(path, TODAY, size, 500, 0, 0, 0.0)], key, 1)


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
    monkeypatch.setattr(merging, "GROUP_ROWS", 16)
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


def test_sorted_files_are_merged_range_by_range_within_the_memory(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "GROUP_ROWS", 8)
    assert compacted(directory) == 10
    for _ in range(3):
        for _ in range(4):
            writer.write(10)
        compacted(directory)
    before, seen = stored(directory), []
    by_ranges = merging._by_ranges

    def watched(*arguments: Any) -> Iterator[pa.Table]:
        for rows in by_ranges(*arguments):
            seen.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(merging, "_by_ranges", watched)
    hands = care(directory)
    files = sorted(hands.table.files(), key=lambda file: file.path)
    merged, adds = merging.merge(how(hands, memory=10_000), files)
    hands.table.replace(merged, adds, what="test")
    assert stored(directory) == before
    assert len(merged) == len(files) == 4
    assert len(seen) > 3
    assert max(seen) < len(before) / 2


def how(hands: Care, memory: int) -> merging.Merging:
    schema, key = hands.table.schema, KEYS["readings"]
    return merging.Merging(hands.table.path, schema, key, memory, hands.limits, True, lambda: None)


def test_files_that_are_not_sorted_come_first_and_only_as_many_as_fit(writer: Writer, directory: Path) -> None:
    compacted(directory)
    for _ in range(4):
        writer.write()
    hands = care(directory)
    files = hands.table.files()
    chosen = merging.open_sources(hands.table.path, files, KEYS["readings"], 1 << 30)
    assert len(chosen) == 4
    assert not any(source.is_sorted for source in chosen)
    footprint = chosen[0].footprint
    few = merging.open_sources(hands.table.path, files, KEYS["readings"], 3 * footprint)
    assert len(few) == 3


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


# -- others at work


def test_a_node_goes_on_writing_while_files_are_merged(directory: Path) -> None:
    writer, ended = Writer(directory), threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            while not ended.is_set():
                writer.write(3)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    merges, deadline_s = 0, time.monotonic() + 60
    while merges < 6 and time.monotonic() < deadline_s:
        hands = care(directory)
        hands.shorten_log()
        merges += hands.compact()
    ended.set()
    thread.join()
    assert failed == []
    assert merges == 6
    rows = stored(directory)
    expected = [(slice_, offset) for slice_ in range(SLICES) for offset in range(1, writer.offsets[slice_] + 1)]
    assert [(row["slice"], row["offset"]) for row in rows] == expected
    assert all(row["value"] == row["slice"] * 1e6 + row["offset"] for row in rows)


def test_a_node_that_looked_before_a_merge_commits_after_it(writer: Writer, directory: Path) -> None:
    """The conflict checker of delta-rs takes a merge for no conflict, and a dropped day for one to try again."""
    refresh = writer.table.refresh
    for changed in (lambda: care(directory).compact(), lambda: care(directory, readings_days=40).retain()):

        def late(changed: object = changed) -> DeltaTable:
            table = refresh()
            if changed is not None:
                writer.table.refresh = refresh  # type: ignore[method-assign]
                changed()  # type: ignore[operator]
            return table

        writer.write(day=days_ago(100))
        writer.table.refresh = late  # type: ignore[method-assign]
        writer.write()
    rows = stored(directory)
    assert len(rows) == 12 * 5 * SLICES, "ten, and two of today; those of a hundred days ago are gone"


def test_a_maintainer_that_slept_is_refused(writer: Writer, directory: Path) -> None:
    sleeper, other = care(directory), care(directory)
    sleeper.table.claim()
    (files,) = sleeper.planned()
    other.table.claim()
    with pytest.raises(FencedError, match="maintainer epoch 2, not at 1"):
        sleeper.table.replace(files, [], what="test", data_change=True)
    assert len(stored(directory)) == 10 * 5 * SLICES
    sleeper.table.begin()
    assert sleeper.compact()
    with pytest.raises(FencedError):
        other.table.claim()


def test_one_that_freezes_between_looking_and_writing_is_refused(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, other = care(directory), care(directory)
    sleeper.table.claim()
    attempt = sleeper.table._try_commit

    def frozen_meanwhile(*arguments: object) -> bool:
        monkeypatch.setattr(sleeper.table, "_try_commit", attempt)
        assert other.compact()
        return attempt(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sleeper.table, "_try_commit", frozen_meanwhile)
    before = stored(directory)
    with pytest.raises(FencedError):
        sleeper.compact()
    assert stored(directory) == before
    assert sleeper.done.files_merged == 0
    assert len(data_files(directory)) == 10 + 1, "what the refused one wrote is gone again"


def test_files_that_a_program_without_our_fence_has_merged_are_left(writer: Writer, directory: Path) -> None:
    hands = care(directory)
    hands.table.claim()
    (plan,) = hands.planned()
    DeltaTable(str(directory / "readings")).optimize.compact()
    before = stored(directory)
    with pytest.raises(FencedError, match="are no longer in it"):
        hands.table.replace(plan, [], what="test")
    assert stored(directory) == before


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, OSError])
def test_a_merge_that_is_broken_off_leaves_the_table_and_no_file(
    writer: Writer, directory: Path, error: type[BaseException]
) -> None:
    before, files = stored(directory), data_files(directory)
    hands = care(directory)

    def broken() -> None:
        raise error

    hands.pace.between = broken
    with pytest.raises(error):
        hands.compact()
    assert stored(directory) == before
    assert data_files(directory) == files


def test_what_a_killed_merge_leaves_is_vacuumed_later(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill leaves no time to tidy up: the files are there, and no table knows them."""
    hands = care(directory)
    before = stored(directory)
    monkeypatch.setattr(hands.table, "replace", lambda *_, **__: None)
    hands.compact()
    orphans = data_files(directory) - active(directory)
    assert len(orphans) == 1
    care(directory).vacuum()
    assert orphans <= data_files(directory), "fresh: it could be a batch's that is about to commit"
    make_old(directory)
    tidy = care(directory)
    tidy.vacuum()
    assert tidy.done.files_removed == 1
    assert data_files(directory) == active(directory)
    assert stored(directory) == before


# -- vacuum


def test_a_replaced_file_stays_for_as_long_as_a_reader_may_need_it(writer: Writer, directory: Path) -> None:
    old = active(directory)
    make_old(directory)
    reader = DeltaTable(str(directory / "readings"))
    compacted(directory)
    care(directory).vacuum()
    assert old <= data_files(directory)
    assert reader.to_pyarrow_table().num_rows == 10 * 5 * SLICES


def test_vacuum_fences_off_whoever_could_bring_a_removed_file_back(writer: Writer, directory: Path) -> None:
    sleeper = care(directory)
    sleeper.table.claim()
    orphan = directory / "readings" / f"date={TODAY}" / "part-orphan.parquet"
    orphan.write_bytes(b"not even parquet")
    make_old(directory)
    care(directory).vacuum()
    assert not orphan.exists()
    with pytest.raises(FencedError):
        sleeper.table.replace(sleeper.planned()[0], [], what="test")


def test_vacuum_touches_nothing_but_data_files(writer: Writer, directory: Path) -> None:
    (directory / "readings" / "notes.txt").write_text("mine")
    (directory / "readings" / f"date={days_ago(9)}").mkdir()
    (directory / "readings" / f"date={days_ago(1)}").mkdir()
    log_before = {path.name for path in (directory / "readings" / "_delta_log").iterdir()}
    make_old(directory)
    care(directory).vacuum()
    assert {path.name for path in (directory / "readings" / "_delta_log").iterdir()} == log_before
    assert (directory / "readings" / "notes.txt").exists()
    assert not (directory / "readings" / f"date={days_ago(9)}").exists()
    assert (directory / "readings" / f"date={days_ago(1)}").exists(), "a node may be about to write there"


# -- retention


def test_whole_days_are_dropped_and_never_todays(writer: Writer, directory: Path) -> None:
    for day in (100, 41, 40, 1):
        writer.write(day=days_ago(day))
    hands = care(directory, readings_days=40)
    assert {file.date for file in hands.to_drop()} == {days_ago(100), days_ago(41)}
    hands.retain()
    assert hands.done.dates_dropped == 2
    assert {row["date"] for row in stored(directory)} == {days_ago(40), days_ago(1), TODAY}
    hands.retain()
    assert hands.done.dates_dropped == 2
    writer.write()


def test_a_table_that_refuses_deletes_is_opened_for_them(writer: Writer, directory: Path) -> None:
    DeltaTable(str(directory / "readings")).alter.set_table_properties({"delta.appendOnly": "true"})
    writer.write(day=days_ago(100))
    hands = care(directory, readings_days=40)
    hands.shorten_log()
    hands.retain()
    assert {row["date"] for row in stored(directory)} == {TODAY}


def test_readings_are_kept_for_longer_than_identities_are_remembered() -> None:
    check_retention(MaintenanceSettings(), 7)
    check_retention(MaintenanceSettings(readings_days=8), 7)
    with pytest.raises(UserError, match=r"readings_days is 7, and \[node\] identity_horizon_days is 7"):
        check_retention(MaintenanceSettings(readings_days=7), 7)


# -- the log


def test_the_log_is_shortened_and_nothing_is_forgotten(writer: Writer, directory: Path) -> None:
    for _ in range(60):
        writer.write(1)
    hands = care(directory)
    hands.shorten_log()
    assert hands.done.log_entries_removed == 0, "all of it is young"
    make_old(directory)
    hands.shorten_log()
    assert hands.done.log_entries_removed >= 40
    assert hands.health().log_entries < 40
    assert LogTable(directory, "readings").claim(dict.fromkeys(range(SLICES), 1)) == writer.offsets
    before = len(stored(directory))
    writer.write()
    assert len(stored(directory)) == before + 5 * SLICES
    configuration = DeltaTable(str(directory / "readings")).metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 300 seconds"
    assert configuration["delta.deletedFileRetentionDuration"] == "interval 1 hours"


def test_too_many_entries_go_even_within_the_retention(writer: Writer, directory: Path) -> None:
    for _ in range(150):
        writer.write(1)
    make_old(directory, hours=0.05)
    hands = care(directory, log_entries_max=100)
    hands.shorten_log()
    assert hands.health().log_entries <= 100 + 22
    assert len(stored(directory)) == 10 * 5 * SLICES + 150 * SLICES


def test_a_checkpoint_that_is_not_whole_keeps_the_log(writer: Writer, directory: Path) -> None:
    for _ in range(30):
        writer.write(1)
    make_old(directory)
    found = log.listing(directory / "readings" / "_delta_log")
    damaged = found.directory / f"{found.checkpoint:020d}{log.CHECKPOINT}"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(pa.ArrowInvalid):
        log.clean(found, time.time(), 300, 4_000, lambda: None)
    assert log.listing(found.directory) == found


def test_leftovers_of_dead_writers_go_from_the_log(writer: Writer, directory: Path) -> None:
    place = directory / "readings" / "_delta_log"
    old, fresh = place / "_commit_1.json.tmp", place / "00000000000000000001.json#1"
    old.touch()
    make_old(directory)
    fresh.touch()
    care(directory).shorten_log()
    assert not old.exists()
    assert fresh.exists()
    assert (place / "_last_checkpoint").exists() or not log.listing(place).checkpoints


def test_a_log_that_was_never_looked_after_comes_down_in_stages(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "CHECKPOINT_STEP", 7)
    place = directory / "readings" / "_delta_log"
    for made in (*place.glob("*.checkpoint.parquet"), place / "_last_checkpoint"):
        made.unlink(missing_ok=True)
    before = stored(directory)
    make_old(directory)
    hands = care(directory)
    hands.shorten_log()
    found = log.listing(place)
    assert found.entries[0] == found.checkpoints[0] == 7
    assert hands.done.log_entries_removed == 7
    assert stored(directory) == before
    assert LogTable(directory, "readings").claim(dict.fromkeys(range(SLICES), 1)) == writer.offsets
    assert not (directory / "readings" / log.STAGE).exists()


def test_a_handle_from_before_the_clean_up_cannot_commit_until_it_looks_again(writer: Writer, directory: Path) -> None:
    stale = DeltaTable(str(directory / "readings"))
    for _ in range(60):
        writer.write(1)
    make_old(directory)
    care(directory).shorten_log()
    with pytest.raises(DeltaError, match="Invalid table version"):
        stale.create_write_transaction([], "append", stale.schema(), partition_by=["date"])
    stale.update_incremental()
    assert stale.version() == DeltaTable(str(directory / "readings")).version()
    hands = care(directory)
    hands.table.claim()
    assert DeltaTable(str(directory / "readings")).transaction_version(EPOCH) == 1


# -- tables that are not ours to look after


def test_a_table_that_is_not_there_is_no_problem(directory: Path) -> None:
    assert not MaintainedTable(directory, "readings").exists
    LogTable(directory, "readings").claim({0: 1})
    assert MaintainedTable(directory, "readings").exists


def test_a_table_of_an_earlier_version_is_named(directory: Path) -> None:
    (directory / "readings").mkdir(parents=True)
    DeltaTable.create(str(directory / "readings"), schema=pa.schema([("slice", pa.int32())]))
    with pytest.raises(TidegateError, match="is not kept by date"):
        care(directory).compact()


def test_settings_come_from_the_tree() -> None:
    settings = load(None, {"TIDEGATE_MAINTENANCE__READINGS_DAYS": "60"})
    assert settings.maintenance.days == {"readings": 60, "means": 0, "rejected": 90}
    with pytest.raises(UserError, match="file_mib_max 40 is less than twice file_mib_min 32"):
        load(None, {"TIDEGATE_MAINTENANCE__FILE_MIB_MAX": "40"})
