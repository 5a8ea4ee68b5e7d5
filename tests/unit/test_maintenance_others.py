"""Maintenance while others are at work on the table: nodes that write, and maintainers that slept."""

import threading
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from maintaining import SLICES, Writer, care, data_files, days_ago, stored
from tidegate.model.errors import FencedError


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
