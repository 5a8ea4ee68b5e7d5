"""Whoever opens a table whose log nobody looked after sums it up first, in stages, and one does it for all."""

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from maintaining import SLICES, Writer, care, stored
from tidegate.pipeline.tables import checkpoints
from tidegate.pipeline.tables.tables import LogTable


@pytest.fixture
def log(writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty entries and more, and no checkpoint; ten are many."""
    monkeypatch.setattr(checkpoints, "STEP", 7)
    monkeypatch.setattr(checkpoints, "BEHIND_MAX", 14)
    for _ in range(40):
        writer.write(1)
    place = directory / "readings" / "_delta_log"
    for made in (*place.glob("*.checkpoint.parquet"), place / "_last_checkpoint"):
        made.unlink(missing_ok=True)
    return place


def test_an_opener_writes_the_checkpoints_first_and_finds_all(log: Path, writer: Writer, directory: Path) -> None:
    before = stored(directory)
    assert LogTable(directory, "readings").claim(dict.fromkeys(range(SLICES), 1)) == writer.offsets
    assert checkpoints.behind(log) < 7 + 2
    assert len(checkpoints.listing(log).checkpoints) >= 5
    assert stored(directory) == before
    assert not (directory / "readings" / checkpoints.STAGE).exists()


def test_a_few_entries_are_read_as_they_are(log: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "BEHIND_MAX", checkpoints.behind(log))
    LogTable(directory, "readings").refresh()
    assert checkpoints.listing(log).checkpoints == ()


def test_one_does_it_and_the_others_wait(log: Path, directory: Path) -> None:
    lock = os.open(directory / "readings" / "_checkpointing.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    opened = threading.Thread(target=lambda: LogTable(directory, "readings").refresh())
    opened.start()
    time.sleep(0.6)
    assert checkpoints.listing(log).checkpoints == ()
    os.close(lock)
    opened.join(30)
    assert checkpoints.behind(log) < 7 + 2


def test_who_is_told_to_stop_while_waiting_stops(log: Path, directory: Path) -> None:
    lock = os.open(directory / "readings" / "_checkpointing.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        checkpoints.catch_up(log, stop)
    os.close(lock)


def test_what_was_done_before_an_end_stays_done(log: Path) -> None:
    """Ended after each stage, it comes to its end all the same."""

    def stop() -> None:
        raise InterruptedError

    for ends in range(1, 6):
        with pytest.raises(InterruptedError):
            checkpoints.catch_up(log, stop)
        assert len(checkpoints.listing(log).checkpoints) == ends


def test_an_entry_that_is_missing_is_for_the_reader_to_say(log: Path) -> None:
    (log / f"{20:020d}.json").unlink()
    checkpoints.catch_up(log)
    assert checkpoints.listing(log).checkpoint == 14


def test_where_files_cannot_be_linked_they_are_copied(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    checkpoints.catch_up(log)
    assert checkpoints.behind(log) < 7


def test_maintenance_removes_what_a_killed_stage_left(writer: Writer, directory: Path) -> None:
    writer.write(1)
    stage = directory / "readings" / checkpoints.STAGE
    (stage / "_delta_log").mkdir(parents=True)
    os.link(directory / "readings" / "_delta_log" / f"{0:020d}.json", stage / "_delta_log" / f"{0:020d}.json")
    care(directory).shorten_log()
    assert not stage.exists()
