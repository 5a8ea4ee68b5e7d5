"""Batches that are committed together, and how long they may wait for it."""

import time

import pytest
from sinking import Bench, reading

from tidegate.model.errors import TidegateError
from tidegate.pipeline.tables.tables import Tables


def test_results_are_held_until_the_commit_interval_has_passed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("tidegate.pipeline.tables.sink.time.monotonic", lambda: now_s)
    monkeypatch.setattr("tidegate.pipeline.tables.sink._uptime_s", lambda: now_s)
    bench.sink._commit_s = 10.0
    bench.sink._held_since_s = now_s
    version = bench.sink._tables.readings.refresh().version()
    for after, payloads in ((0, [reading(1)]), (1, [reading(2), reading(1)]), (3, [reading(3)])):
        bench.sink._held.append(bench.task(0, after, payloads))
        if after == 0:
            assert len(bench.sink.flush()) == 1
    assert bench.sink.flush() == []
    assert bench.sequences() == [1]
    now_s = 111.0
    assert len(bench.sink.flush()) == 2
    assert bench.sequences() == [1, 2, 3]
    assert bench.sink._tables.readings.refresh().version() == version + 2
    bench.sink.settle()


def test_a_driver_that_slept_commits_no_file_that_maintenance_may_remove(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._uptime_s", lambda: 10_000.0)
    bench.sink._held, bench.sink._held_since_s = [bench.task(0, 0, [reading(1)])], 10_000.0 - 1_801
    with pytest.raises(TidegateError, match="A batch waited more than 30 min"):
        bench.sink.flush()
    assert bench.sequences() == []


def test_a_file_that_is_gone_is_not_committed(bench: Bench) -> None:
    result = bench.task(0, 0, [reading(1)])
    (bench.directory / "readings" / result.readings[0].path).unlink()
    with pytest.raises(TidegateError, match="is not there any more, or not whole"):
        bench.sink.commit_results([result])
    assert bench.sequences() == []


def test_a_repeat_among_held_results_is_stored_once(bench: Bench) -> None:
    bench.sink.commit_results([bench.task(0, 0, [reading(1), reading(2)]), bench.task(0, 2, [reading(2), reading(3)])])
    assert bench.sequences() == [1, 2, 3]
    assert Tables(bench.directory).readings.position(0).offset == 4


@pytest.mark.parametrize("step_s", [-86_400.0, 86_400.0])
def test_a_drivers_clock_that_was_set_stops_no_commit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    bench.write(0, 0, [reading(1)])
    now_s = time.time
    monkeypatch.setattr("time.time", lambda: now_s() + step_s)
    bench.write(0, 1, [reading(2)])
    bench.restart(2)
    bench.write(0, 2, [reading(3), reading(1)])
    assert bench.sequences() == [1, 2, 3]
