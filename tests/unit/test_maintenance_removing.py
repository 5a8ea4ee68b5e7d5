"""What maintenance removes: leftovers, files that were replaced, and days that are no longer kept."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from maintaining import SLICES, TODAY, Writer, active, care, compacted, data_files, days_ago, make_old, stored
from tidegate.model.errors import FencedError


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
