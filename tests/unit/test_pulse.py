"""When a query counts as hanging: a table of silences, and how long the wait is for what kind of node."""

import os
from pathlib import Path

import pytest

from tidegate.pipeline.progress import ProgressBoard
from tidegate.pipeline.pulse import FIRST, LOOK_S_MAX, RECENT, Pulse
from tidegate.pipeline.scratch import Scratch, rows_between

FLOOR_S = 30.0


def beating(*batches_s: float, trigger_s: float = 0.0, told_s_per_row: float = 0.0) -> Pulse:
    pulse = Pulse(FLOOR_S, trigger_s, told_s_per_row)
    pulse.beat()
    for batch_s in batches_s:
        pulse.took(batch_s)
    return pulse


def busy(*batches: tuple[int, float]) -> Pulse:
    pulse = beating()
    for rows, busy_s in batches:
        pulse.was_busy(rows, busy_s)
    return pulse


@pytest.mark.parametrize(
    ("pulse", "rows_planned", "patience_s"),
    [
        pytest.param(Pulse(FLOOR_S), 0, 300.0, id="before a first batch nothing is known of it"),
        pytest.param(beating(), 0, 30.0, id="an idle query answers at once"),
        pytest.param(beating(0.2, 0.3), 0, 30.0, id="short batches do not shorten the wait"),
        pytest.param(beating(0.2, 20.0, 0.3), 0, 100.0, id="the longest recent batch stretches it"),
        pytest.param(beating(20.0, *[0.2] * RECENT), 0, 30.0, id="a long batch is forgotten in time"),
        pytest.param(beating(trigger_s=600.0), 0, 630.0, id="between two triggers there is nothing to hear"),
        pytest.param(beating(told_s_per_row=0.001), 100_000, 500.0, id="a known cost counts before it is seen"),
        pytest.param(busy((10, 1.0), (1_000, 2.0)), 100_000, 1_000.0, id="the least of what rows took, five times"),
        pytest.param(busy((10, 0.1)), 100, 30.0, id="few rows are done within the floor"),
        pytest.param(busy((0, 5.0)), 100_000, 30.0, id="a batch of nothing says nothing of rows"),
    ],
)
def test_how_long_a_silence_may_be(pulse: Pulse, rows_planned: int, patience_s: float) -> None:
    assert pulse.patience_s(rows_planned) == pytest.approx(patience_s)


def test_time_counts_as_silence_only_while_somebody_looks() -> None:
    pulse = beating()
    assert pulse.silent_s(100.0) == 0
    assert pulse.silent_s(100.5) == 0.5
    assert pulse.silent_s(1_000.0) == 0.5 + LOOK_S_MAX, "the keeper was frozen, too"
    assert pulse.silent_s(999.0) == 0.5 + LOOK_S_MAX
    pulse.beat()
    assert pulse.silent_s(1_001.0) == pytest.approx(2.0)


def test_a_new_query_has_the_patience_of_a_first_batch_again() -> None:
    pulse = beating(1.0)
    assert pulse.patience_s(0) == FLOOR_S
    pulse.started()
    assert pulse.patience_s(0) == FIRST * FLOOR_S


def watched(board: ProgressBoard, seconds: int, rows_planned: int = 0) -> float | None:
    """What somebody sees who looks once a second for so long."""
    seen = None
    for now_s in range(seconds + 1):
        seen = board.stalled_s(float(now_s), lambda: rows_planned)
    return seen


def test_a_board_tells_when_its_query_hangs() -> None:
    board = ProgressBoard("node-1", pulse=Pulse(FLOOR_S))
    board.started()
    assert watched(board, 300) is None
    assert watched(board, 1) == pytest.approx(301, abs=7)
    board.committed([], now_s=0.0)
    assert watched(board, 29) is None
    board.failed("the disk is full")
    assert watched(board, 200) is None, "an error was an answer, and a new query begins"
    idle = {"runId": "1", "batchId": 4, "numInputRows": 0, "batchDuration": 3}
    board.progressed(idle)
    assert watched(board, 30) is None
    assert watched(board, 5) is not None


def test_a_part_of_a_long_batch_is_a_sign_of_life() -> None:
    board = ProgressBoard("node-1", pulse=Pulse(FLOOR_S))
    board.committed([], now_s=0.0)
    for _ in range(10):
        assert watched(board, 20) is None
        board.worked()
    assert watched(board, 29) is None
    assert watched(board, 10) is not None


def test_a_task_that_has_written_a_part_is_noticed_once() -> None:
    scratch = Scratch("tidegate-test-")
    try:
        assert not scratch.has_new_part()
        scratch.alive.touch()
        assert [scratch.has_new_part(), scratch.has_new_part()] == [True, False]
        os.utime(scratch.alive, ns=(1, 1))
        assert scratch.has_new_part()
    finally:
        scratch.remove()


def test_rows_that_are_under_way_are_waited_for() -> None:
    board = ProgressBoard("node-1", pulse=Pulse(FLOOR_S, 0.0, seconds_per_row=0.01))
    board.committed([], now_s=0.0)
    assert watched(board, 100, rows_planned=2_500) is None
    assert watched(board, 40, rows_planned=2_500) is not None


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        pytest.param({}, {}, 0, id="no slices"),
        pytest.param({}, {"0": [1, 100, 130]}, 30, id="a slice that is new here begins where the tables are"),
        pytest.param({"0": [1, 100, 120]}, {"0": [1, 100, 130]}, 10, id="from batch to batch"),
        pytest.param({"0": [1, 100, 120]}, {"0": [3, 110, 130]}, 20, id="lost and taken again under another epoch"),
        pytest.param({"0": [1, 0, 9], "1": [1, 0, 9]}, {"1": [1, 0, 12, 77]}, 3, id="given away, and a longer offset"),
    ],
)
def test_the_rows_of_a_batch_are_between_two_offsets(
    start: dict[str, list[int]], end: dict[str, list[int]], rows: int
) -> None:
    assert rows_between(start, end) == rows


def test_the_batch_under_way_is_read_from_what_spark_wrote_down() -> None:
    scratch = Scratch("tidegate-test-")
    try:
        assert scratch.rows_planned() == 0
        offsets = scratch.checkpoint / "offsets"
        offsets.mkdir(parents=True)
        written(offsets / "9", '{"0":[1,0,50]}')
        assert scratch.rows_planned() == 50
        written(offsets / "10", '{"0":[1,0,1050]}')
        assert scratch.rows_planned() == 1_000
        (offsets / ".11.tmp").write_text("half")
        assert scratch.rows_planned() == 1_000
        (offsets / "11").write_text("v1\n{}")
        assert scratch.rows_planned() == 0, "what cannot be told is no reason to wait"
    finally:
        scratch.remove()


def written(file: Path, offset: str) -> None:
    """As Spark 4.3 writes it: a version, what it knows of the batch, and a line per source."""
    file.write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{offset}')
