"""A task that holds too much writes in parts; together they are what one would have been."""

import dataclasses
import pickle

import pyarrow as pa
import pytest
from sinking import WINDOW_S, Bench, reading

from tidegate.model.errors import SequenceGapError
from tidegate.pipeline.tables import writing
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import TaskResult, write_files
from tidegate.pipeline.transforms.means import merge


def in_parts(bench: Bench, batches: list[pa.RecordBatch]) -> list[TaskResult]:
    return [pickle.loads(part.column("result")[0].as_py()) for part in write_files(bench.settings, iter(batches))]


def test_a_task_writes_large_readings_in_parts_that_are_committed_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PART_BYTES", 300_000)
    alive = bench.directory / "alive"
    bench.settings = dataclasses.replace(bench.settings, alive=alive)
    large = b'{"boot":1,"seq":%d,"value":1,"said":"' + b"x" * 60_000 + b'"}'
    payloads = {0: [large % seq for seq in range(1, 10)], 1: [reading(seq) for seq in range(1, 10)]}
    each = [bench.batch(slice_, 0, payloads[slice_]).slice(row, 1) for row in range(9) for slice_ in (0, 1)]
    version = bench.sink._tables.readings.refresh().version()
    results = in_parts(bench, each)
    steps = [result.slices[0].step for result in results if 0 in result.slices]
    assert steps == [Step(1, 0, 3), Step(1, 3, 6), Step(1, 6, 9)]
    assert sum(result.slices[1].rows for result in results if 1 in result.slices) == 9
    assert alive.exists()
    bench.sink.commit_results(results)
    assert bench.sequences() == sorted([*range(1, 10)] * 2)
    assert bench.sink._tables.readings.refresh().version() == version + 1


def test_a_task_of_small_readings_is_one_part_and_says_nothing_on_its_way(bench: Bench) -> None:
    alive = bench.directory / "alive"
    bench.settings = dataclasses.replace(bench.settings, alive=alive)
    (result,) = in_parts(bench, [bench.batch(0, 0, [reading(1)]), bench.batch(0, 1, [reading(2)])])
    assert result.slices[0].step == Step(1, 0, 2)
    assert not alive.exists()


@pytest.mark.parametrize("rest", [0, 1], ids=["ends with a part", "something is left"])
def test_a_part_knows_the_message_that_its_task_began_behind_and_repeats_of_earlier_parts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rest: int
) -> None:
    monkeypatch.setattr(writing, "PART_BYTES", 1)
    bench.write(0, 0, [reading(1)])
    other = reading(2).replace(b".5", b".7")
    said = [reading(2), reading(3), reading(2), reading(1), other, *[reading(4)] * rest]
    batch = bench.batch(0, 0, [reading(1), *said])
    batch = batch.set_column(3, "after", pa.array([1] * batch.num_rows))
    results = in_parts(bench, [batch.slice(row, 1) for row in range(batch.num_rows)])
    work = [result.slices[0] for result in results if result.slices]
    assert sum(one.rows for one in work) == len(said)
    assert [one.before is not None for one in work] == [True] + [False] * (len(work) - 1)
    bench.sink.commit_results(results)
    bench.sink.settle()
    assert bench.sequences() == [1, 2, 3, *[4] * rest]
    assert sum(merge(bench.table("means"), WINDOW_S)["count"].to_pylist()) == 3 + rest
    assert [row["reason"].partition(":")[0] for row in bench.table("rejected").to_pylist()] == ["identity used twice"]
    assert Tables(bench.directory).readings.position(0).offset == 6 + rest


def test_a_proof_that_came_with_an_earlier_part_is_not_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PART_BYTES", 1)
    bench.write(1, 0, [reading(1)])
    moved = bench.batch(1, 0, [reading(7), reading(8)]).set_column(3, "after", pa.array([1, 1]))
    first, second = in_parts(bench, [moved.slice(0, 1), bench.batch(0, 0, [reading(1)]), moved.slice(1, 1)])
    assert (list(first.slices), list(second.slices)) == ([0], [1])
    with pytest.raises(SequenceGapError, match="Slice 1 has another message at 1"):
        bench.sink.commit_results([first, second])
