"""The table's log is shortened, and nothing that it says is forgotten."""

import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from maintaining import SLICES, Writer, care, make_old, stored
from tidegate.pipeline.maintenance import log
from tidegate.pipeline.maintenance.table import EPOCH
from tidegate.pipeline.tables import checkpoints
from tidegate.pipeline.tables.tables import LogTable


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
    found = checkpoints.listing(directory / "readings" / "_delta_log")
    damaged = found.directory / f"{found.checkpoint:020d}{checkpoints.CHECKPOINT}"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(pa.ArrowInvalid):
        log.clean(found, time.time(), 300, 4_000, lambda: None)
    assert checkpoints.listing(found.directory) == found


def test_leftovers_of_dead_writers_go_from_the_log(writer: Writer, directory: Path) -> None:
    place = directory / "readings" / "_delta_log"
    old, fresh = place / "_commit_1.json.tmp", place / "00000000000000000001.json#1"
    old.touch()
    make_old(directory)
    fresh.touch()
    care(directory).shorten_log()
    assert not old.exists()
    assert fresh.exists()
    assert (place / "_last_checkpoint").exists() or not checkpoints.listing(place).checkpoints


def test_a_log_that_was_never_looked_after_comes_down_in_stages(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "STEP", 7)
    place = directory / "readings" / "_delta_log"
    for made in (*place.glob("*.checkpoint.parquet"), place / "_last_checkpoint"):
        made.unlink(missing_ok=True)
    before = stored(directory)
    make_old(directory)
    hands = care(directory)
    hands.shorten_log()
    found = checkpoints.listing(place)
    assert found.entries[0] == found.checkpoints[0] == 7
    assert hands.done.log_entries_removed == 7
    assert stored(directory) == before
    assert LogTable(directory, "readings").claim(dict.fromkeys(range(SLICES), 1)) == writer.offsets
    assert not (directory / "readings" / checkpoints.STAGE).exists()


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
