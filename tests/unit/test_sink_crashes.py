"""A sink that dies between two tables, is late, or is handed half a batch: nothing is lost, twice or half."""

import time
from unittest.mock import Mock

import pytest
from deltalake import DeltaTable
from sinking import WINDOW_S, Bench, reading

from tidegate.model.errors import FencedError, SequenceGapError
from tidegate.pipeline.maintenance.log import clean
from tidegate.pipeline.tables.checkpoints import listing
from tidegate.pipeline.tables.writing import write_files
from tidegate.pipeline.transforms.means import merge


def test_means_lost_in_a_crash_are_derived_from_the_readings(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    task = bench.task(0, 1, [reading(2), reading(15)])
    bench.sink._adopt([task])
    bench.sink._tables.readings.commit(task.readings, {0: task.slices[0].step})  # and here the process dies
    bench.restart(2)
    bench.write(0, 3, [reading(16)])
    merged = merge(bench.table("means"), WINDOW_S).to_pylist()
    assert [(row["count"], int(row["sum_micro"])) for row in merged] == [(2, 4_000_000), (2, 32_000_000)]


def test_rejects_of_a_replayed_batch_are_kept_once(bench: Bench) -> None:
    task = bench.task(0, 0, [b"junk", reading(1)])
    bench.sink._adopt([task])
    bench.sink._commit_rejected(task.rejected, {0: task.slices[0].step})  # the process dies before the readings are in
    bench.restart(2)
    bench.write(0, 0, [b"junk", reading(1), b"more junk"])
    assert bench.sequences() == [1]
    assert sorted(bench.table("rejected")["offset"].to_pylist()) == [1, 3]


def test_rejects_of_a_batch_that_failed_are_not_skipped_by_those_of_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, following = bench.task(0, 0, [b"junk", reading(1)]), bench.task(0, 2, [b"more junk"])
    with monkeypatch.context() as patched:
        patched.setattr(bench.sink._screen, "apply", Mock(side_effect=OSError("disk")))
        with pytest.raises(OSError, match="disk"):
            bench.sink.commit_results([failing])
    with pytest.raises(FencedError):  # the query's thread may be quicker than the one that stops the query
        bench.sink.commit_results([following])
    bench.restart(2)
    bench.write(0, 0, [b"junk", reading(1), b"more junk"])
    assert sorted(bench.table("rejected")["offset"].to_pylist()) == [1, 3]


def test_a_zombie_writes_to_no_table(bench: Bench) -> None:
    zombie = bench.sink
    late = bench.task(0, 0, [reading(1), b"junk"])
    bench.restart(2)
    with pytest.raises(FencedError):
        zombie.commit_results([late])
    for name in ("readings", "means", "rejected"):
        assert bench.table(name).num_rows == 0


def test_a_batch_with_a_hole_is_an_error(bench: Bench) -> None:
    whole = bench.batch(0, 0, [reading(1), reading(2), reading(3)])
    with pytest.raises(SequenceGapError, match="Slice 0 delivered 2 messages behind 0 up to 3"):
        list(write_files(bench.settings, iter([whole.slice(0, 1), whole.slice(2)])))


def test_a_new_slice_is_loaded_while_the_tasks_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    bench.restart(2)
    bench.sink._owned = lambda: {0: 2, 1: 2}
    bench.sink._load_ahead()
    monkeypatch.setattr("tidegate.pipeline.tables.sink.load_known", lambda *_: pytest.fail("loaded twice"))
    bench.write(0, 2, [reading(2), reading(3)])
    assert bench.sequences() == [1, 2, 3]


def test_a_driver_that_waited_for_its_first_batch_while_the_log_was_cleaned(bench: Bench) -> None:
    waiting = bench.sink
    bench.restart(1)
    for after in range(4):
        bench.write(1, after, [reading(after)])
    for name in ("readings", "means", "rejected"):
        table = DeltaTable(str(bench.directory / name))
        table.create_checkpoint()
        log = listing(bench.directory / name / "_delta_log")
        clean(log, time.time() + 3_600, 0.0, 1, lambda: None)
    bench.sink = waiting
    bench.write(0, 0, [reading(1)])
    assert bench.table("readings").num_rows == 5
