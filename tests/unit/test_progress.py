"""What a node says of itself, from reports as Spark 4.3 writes them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tidegate.model.progress import BATCHES_SAID, NodeProgress, RowsAtLimit
from tidegate.pipeline.progress import ProgressBoard, plausible
from tidegate.pipeline.pulse import Pulse
from tidegate.pipeline.tables.writing import TaskResult


def report(
    batch: int = 1,
    *,
    rows: int = 500,
    ms: int = 400,
    ends: tuple[int, ...] = (300, 200),
    latest: tuple[int, ...] | None = None,
    cut: tuple[int, ...] = (),
    run: str = "0cb93da5",
) -> dict[str, Any]:
    newest = ends if latest is None else latest
    source = {
        "startOffset": None,
        "endOffset": {str(slice_): [2, 0, end] for slice_, end in enumerate(ends)},
        "latestOffset": {str(slice_): [int(slice_ in cut), 0, end] for slice_, end in enumerate(newest)},
        "numInputRows": rows,
    }
    return {
        "runId": run,
        "batchId": batch,
        "timestamp": f"2026-11-16T05:17:{batch:02d}.{ms:03d}Z",
        "batchDuration": ms,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": ms},
        "sources": [source],
    }


def progress(board: ProgressBoard) -> NodeProgress:
    said = board.progress(now_s=1.0)
    assert said is not None
    assert board.progress(now_s=2.0) is None, "nothing new has been said since"
    return said


def limit(rows: int, seconds: float) -> RowsAtLimit:
    return RowsAtLimit(rows=rows, seconds=seconds)


NOTHING = limit(0, 0.0)


def ended(board: ProgressBoard, one: dict[str, Any], *, busy: float = 0.8) -> None:
    """A batch, of whose time tasks worked on its rows for the share ``busy``."""
    board.committed([TaskResult({}, busy_s=busy * one["batchDuration"] / 1e3)], now_s=1.0)
    board.progressed(one)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(report(ms=999), NOTHING, id="short, and nothing left: it had little to do"),
        pytest.param(report(ms=1000), limit(500, 1.0), id="a second of work"),
        pytest.param(report(rows=399, ms=1000), NOTHING, id="no larger than the one before"),
        pytest.param(report(latest=(300, 201), cut=(1,)), limit(500, 0.4), id="one row had to wait"),
        pytest.param(report(latest=(300, 201)), NOTHING, id="one row waits, but not because of a limit"),
        pytest.param(report(ends=(300,), latest=(300, 201), cut=(1,)), NOTHING, id="a slice that is not held any more"),
        pytest.param(report(rows=0, ms=3000), NOTHING, id="a long batch of nothing"),
        pytest.param(report(rows=401, ms=2673), NOTHING, id="suddenly much slower: it was held up"),
        pytest.param(report(rows=501, ms=1673, run="another"), NOTHING, id="the first batch of a query"),
        pytest.param(report(ends=(300, 200), latest=(300,)), NOTHING, id="an end that was not asked for"),
    ],
)
def test_which_batches_show_what_a_node_can_do(one: dict[str, Any], expected: RowsAtLimit) -> None:
    board = ProgressBoard("node-1")
    ended(board, report(0, rows=200, ms=500))
    ended(board, report(0, rows=400, ms=1000))
    ended(board, one)
    assert progress(board).limit == expected


def counted(*batches: tuple[int, int], busy: float = 0.8) -> RowsAtLimit:
    """Of batches of so many rows and milliseconds."""
    board = ProgressBoard("node-1")
    for number, (rows, ms) in enumerate(batches):
        ended(board, report(number, rows=rows, ms=ms), busy=busy)
    return progress(board).limit


def test_a_machine_that_has_become_slow_counts_once_that_has_lasted() -> None:
    assert counted((200, 400), (400, 2000), (600, 3000), (800, 4000)) == limit(1400, 7.0)


def test_long_batches_that_do_not_grow_keep_up_and_show_nothing() -> None:
    """A busy machine: every batch takes two seconds, and has what arrived in two seconds."""
    assert counted(*((rows, 2000) for rows in (200, 320, 310, 330, 300, 350, 340))) == NOTHING


def test_batches_that_are_long_because_of_something_else_show_nothing() -> None:
    """Rows took less than half of their time."""
    growing = tuple((200 * 2**number, 400 * 2**number) for number in range(6))
    assert counted(*growing, busy=0.5) == NOTHING
    assert counted(*growing, busy=0.7).rows > 0


def test_slow_growth_is_growth_too() -> None:
    assert counted(*((round(1000 * 1.06**number), 1000 + 50 * number) for number in range(8))).rows > 0


def test_one_long_batch_after_a_pause_is_no_limit() -> None:
    assert counted((200, 400), (210, 400), (1600, 2800), (900, 1600), (300, 600)) == NOTHING


def test_work_at_the_limit_adds_up_over_batches_and_over_queries() -> None:
    board = ProgressBoard("node-1")
    for batch, ms in enumerate([300, 1500, 1800, 300]):
        ended(board, report(batch, ms=ms, rows=ms))
    board.failed("the disk is full")
    for batch, ms in enumerate([2000, 4000, 8000]):
        ended(board, report(batch, ms=ms, rows=ms, run="another"))
    assert progress(board).limit == limit(9800, 9.8)


def test_a_report_is_known_by_its_query_its_batch_and_its_time() -> None:
    board = ProgressBoard("node-1")
    board.progressed(report(14, rows=0, ms=3))  # an idle query reports the number of the batch that comes next
    assert board.has_seen(report(14, rows=0, ms=3))
    assert not board.has_seen(report(14, ms=483))
    assert not board.has_seen(report(14, rows=0, ms=3, run="another"))


def test_a_node_is_ready_once_a_batch_has_ended_even_one_without_slices() -> None:
    board = ProgressBoard("node-2")
    before = progress(board)
    assert (before.ready, before.limit) == (False, NOTHING)
    board.committed([], now_s=1.5)
    board.progressed(report(0, rows=0, ends=()))
    after = progress(board)
    assert (after.ready, after.query["held"]) == (True, [])
    assert after.committed_at_s == 0, "an empty batch commits nothing"


def test_what_waits_for_the_next_trigger_is_at_the_limit_meanwhile() -> None:
    board = ProgressBoard("node-1", trigger_s=1.0)
    for batch in (1, 2, 3):
        board.progressed(report(batch, latest=(300, 201), cut=(1,)))
    assert progress(board).limit == limit(1000, 2.0)


def test_few_rows_are_at_the_limit_if_their_bytes_were_and_many_rows_are_not_if_nothing_cut_them() -> None:
    board = ProgressBoard("node-1")
    board.progressed(report(1, rows=800))
    board.progressed(report(2, rows=9, latest=(300, 201), cut=(1,)))
    board.progressed(report(3, rows=400_000, ms=5_000))
    said = progress(board)
    assert [batch.at_limit for batch in said.batches] == [False, True, False]
    assert said.limit == limit(9, 0.4)


def test_a_node_that_stops_in_good_order_says_so_even_if_nothing_else_is_new() -> None:
    board = ProgressBoard("node-1")
    assert not progress(board).left
    last = board.farewell(now_s=3.0)
    assert (last.left, last.at_s) == (True, 3.0)
    written = msgspec.json.decode(msgspec.json.encode(last))
    assert (written["at"], written["committed_at"]) == (3.0, 0.0), "the names that others read"


def test_an_alarm_stands_until_the_one_who_raised_it_ends_it() -> None:
    board = ProgressBoard("node-1")
    board.alarm("retention", "The job's document is damaged.")
    board.alarm("keeper", "The bus is away.")
    board.committed([], now_s=1.0)
    assert progress(board).alarm == "The job's document is damaged. The bus is away."
    board.alarm("keeper", None)
    assert progress(board).alarm == "The job's document is damaged.", "an alarm that ends is news"
    board.alarm("retention", None)
    assert progress(board).alarm is None


def test_batches_with_rows_are_told_with_their_end_and_whether_they_were_at_the_limit() -> None:
    board = ProgressBoard("node-1")
    for batch, one in enumerate([(200, 500), (0, 3), (900, 1500)]):
        board.progressed(report(batch, rows=one[0], ms=one[1], cut=(0,) if batch else ()))
    first, second = progress(board).batches
    assert (first.rows, first.seconds, first.at_limit) == (200, 0.5, False)
    assert (second.rows, second.seconds, second.at_limit) == (900, 1.5, True)
    began = datetime(2026, 11, 16, 5, 17, 0, 500_000, tzinfo=UTC)
    assert first.at_s == pytest.approx(began.timestamp() + 0.5)


@pytest.mark.parametrize("timestamp", [None, "", "yesterday", 7])
def test_a_batch_of_which_spark_does_not_say_when_it_was_is_not_told(timestamp: Any) -> None:
    board = ProgressBoard("node-1")
    board.progressed(report() | {"timestamp": timestamp})
    assert progress(board).batches == ()


def test_what_a_node_says_of_its_batches_stays_small() -> None:
    board = ProgressBoard("node-1")
    for batch in range(3 * BATCHES_SAID):
        board.progressed(report(batch % 60, rows=399_999, ms=12_345))
    said = progress(board)
    assert len(said.batches) == BATCHES_SAID
    bare = msgspec.structs.replace(said, batches=())
    assert len(msgspec.json.encode(said)) - len(msgspec.json.encode(bare)) <= 2_000
    assert msgspec.json.decode(msgspec.json.encode(said), type=NodeProgress) == said


@pytest.mark.parametrize(("said_ms", "meant_ms"), [(700, 700), (-3_455_999_329, 0), (3_456_000_700, 6_000)])
def test_a_clock_that_was_set_makes_no_batch_of_days(said_ms: int, meant_ms: int) -> None:
    assert plausible(report(ms=said_ms), 6.0)["batchDuration"] == meant_ms
    pulse = Pulse(30.0)
    board = ProgressBoard("node-1", pulse=pulse)
    board.progressed(plausible(report(ms=said_ms), 6.0))
    assert pulse.patience_s(0) == 30.0


def test_a_full_batch_is_told_while_it_is_under_way() -> None:
    board = ProgressBoard("node-1")
    board.progressed(report(6))
    assert not progress(board).full
    board.planned(7, 499, 500)
    assert board.progress(now_s=1.0) is None, "not full: nothing is new"
    board.planned(7, 500, 500)
    assert progress(board).full
    board.progressed(report(7))
    board.planned(7, 500, 500)
    assert not progress(board).full, "it has ended"
