"""The message before a batch's first proves that the log is the one that was read."""

import pyarrow as pa
import pytest
from sinking import Bench, reading

from tidegate.model.errors import SequenceGapError
from tidegate.pipeline.tables.writing import TaskResult


def with_proof(bench: Bench, after: int, payloads: list[bytes]) -> TaskResult:
    """A batch that carries the message at ``after`` along."""
    batch = bench.batch(0, after - 1, payloads)
    columns = [
        batch.column(name) if name != "after" else pa.array([after] * len(payloads)) for name in batch.schema.names
    ]
    return bench.task_of(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))


def test_a_log_that_goes_on_from_the_message_that_was_read_is_the_same_log(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    result = with_proof(bench, 2, [reading(2), reading(3)])
    assert (result.slices[0].rows, result.repeats) == (1, 0)
    bench.sink.commit_results([result])
    bench.sink.settle()
    bench.restart(2)  # a successor knows the message from the table
    bench.sink.commit_results([with_proof(bench, 3, [reading(3), reading(4)])])
    assert bench.sequences() == [1, 2, 3, 4]


def test_a_slice_that_others_had_meanwhile_is_taken_up_where_they_left_it(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    bench.write(0, 1, [reading(2)])
    first = bench.sink
    bench.restart(2)  # another node takes the slice, and writes
    bench.write(0, 2, [reading(3)])
    bench.sink._tables.claim({0: 3})  # and the first one gets it back, without having looked at the tables since
    bench.epoch, bench.sink = 3, first
    bench.sink.commit_results([with_proof(bench, 3, [reading(3), reading(4)])])
    bench.sink.settle()
    assert bench.sequences() == [1, 2, 3, 4]


def test_another_message_at_the_place_that_was_read_stops_the_batch(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    with pytest.raises(SequenceGapError, match="Slice 0 has another message at 2"):
        bench.sink.commit_results([with_proof(bench, 2, [reading(7), reading(8)])])
    bench.restart(2)
    with pytest.raises(SequenceGapError, match="Slice 0 has another message at 2"):
        bench.sink.commit_results([with_proof(bench, 2, [reading(7), reading(8)])])
    assert bench.sequences() == [1, 2]
