"""From log rows to tables, crashes in between included: the sink without Spark around it."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidegate.model.errors import FencedError, SequenceGapError
from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskResult, TaskSettings, write_files
from tidegate.pipeline.transforms.means import merge

WINDOW_S = 10


class Bench:
    """Tables in a directory, and a sink that can die and come back."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = TaskSettings(directory, WINDOW_S, 0.0, False)
        self.sink = self.restart(1)

    def restart(self, epoch: int, slices: int = 2) -> Sink:
        self.epoch = epoch
        tables = Tables(self.directory)
        self.offsets = tables.claim(dict.fromkeys(range(slices), epoch))
        self.sink = Sink(tables, self.settings, 3600.0)
        return self.sink

    def task(self, slice_: int, after: int, payloads: list[bytes]) -> TaskResult:
        results = list(write_files(self.settings, iter([self.batch(slice_, after, payloads)])))
        result: TaskResult = pickle.loads(results[0].column("result")[0].as_py())
        return result

    def batch(self, slice_: int, after: int, payloads: list[bytes]) -> pa.RecordBatch:
        count = len(payloads)
        columns = [
            pa.array([slice_] * count, pa.int32()),
            pa.array([self.epoch] * count, pa.int32()),
            pa.array(range(after + 1, after + count + 1), pa.int64()),
            pa.array([f"telemetry/device-{slice_}"] * count, pa.string()),
            pa.array([1_000_000] * count, pa.timestamp("us", tz="UTC")),
            pa.array(payloads, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["slice", "epoch", "offset", "topic", "arrived", "payload"])

    def write(self, slice_: int, after: int, payloads: list[bytes]) -> None:
        self.sink.commit_results([self.task(slice_, after, payloads)])
        self.sink.settle()

    def table(self, name: str) -> pa.Table:
        return DeltaTable(str(self.directory / name)).to_pyarrow_table()

    def sequences(self) -> list[int]:
        return sorted(self.table("readings")["seq"].to_pylist())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "tables")


def reading(seq: int, boot: int = 1) -> bytes:
    return b'{"boot":%d,"seq":%d,"time":%d,"value":%d.5}' % (boot, seq, seq, seq)


def test_repeats_within_a_batch_are_stored_once(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2), reading(2), reading(3), reading(1)])
    assert bench.sequences() == [1, 2, 3]


def test_retransmissions_of_committed_readings_are_dropped_from_readings_and_means(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    bench.write(0, 2, [reading(2), reading(3), reading(1)])
    assert bench.sequences() == [1, 2, 3]
    assert sum(merge(bench.table("means"), WINDOW_S)["count"].to_pylist()) == 3
    assert bench.sink.duplicates == 2


def test_a_batch_of_nothing_but_retransmissions_still_advances_the_slice(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    bench.write(0, 1, [reading(1)])
    bench.write(0, 2, [reading(2)])
    assert bench.sequences() == [1, 2]


def test_a_successor_knows_what_its_predecessor_stored(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2), reading(4)])
    bench.restart(2)
    assert bench.offsets[0] == 3
    bench.write(0, 3, [reading(2), reading(3), reading(4), reading(5)])
    assert bench.sequences() == [1, 2, 3, 4, 5]


def test_a_snapshot_spares_the_successor_the_readings_before_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1), reading(2)])
    bench.write(0, 2, [reading(3)])
    bench.restart(2)
    asked: list[int] = []
    rows = bench.sink._tables.readings.rows
    monkeypatch.setattr(
        bench.sink._tables.readings,
        "rows",
        lambda columns, s, after, to: asked.append(after) or rows(columns, s, after, to),
    )
    bench.write(0, 3, [reading(1), reading(4)])
    assert bench.sequences() == [1, 2, 3, 4]
    assert asked
    assert min(asked) > 0


def test_means_lost_in_a_crash_are_derived_from_the_readings(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    task = bench.task(0, 1, [reading(2), reading(15)])
    bench.sink._adopt(task.slices)
    bench.sink._tables.readings.commit([task.readings], {0: task.slices[0].step})  # and here the process dies
    bench.restart(2)
    bench.write(0, 3, [reading(16)])
    merged = merge(bench.table("means"), WINDOW_S).to_pylist()
    assert [(row["count"], int(row["sum_micro"])) for row in merged] == [(2, 4_000_000), (2, 32_000_000)]


def test_rejects_of_a_replayed_batch_are_kept_once(bench: Bench) -> None:
    task = bench.task(0, 0, [b"junk", reading(1)])
    bench.sink._adopt(task.slices)
    bench.sink._commit_rejected([task], {0: task.slices[0].step})  # the process dies before the readings are in
    bench.restart(2)
    bench.write(0, 0, [b"junk", reading(1), b"more junk"])
    assert bench.sequences() == [1]
    assert sorted(bench.table("rejected")["offset"].to_pylist()) == [1, 3]


def test_readings_without_identity_are_stored_each_time_and_marked(bench: Bench) -> None:
    bench.write(0, 0, [b'{"value":1}', b'{"value":1}'])
    assert bench.table("readings")["identified"].to_pylist() == [False, False]
    assert sum(bench.table("means")["unidentified"].to_pylist()) == 2


def test_a_zombie_writes_to_no_table(bench: Bench) -> None:
    zombie = bench.sink
    late = bench.task(0, 0, [reading(1), b"junk"])
    bench.restart(2)
    with pytest.raises(FencedError):
        zombie.commit_results([late])
    for name in ("readings", "means", "rejected"):
        assert bench.table(name).num_rows == 0


def test_a_batch_with_a_hole_is_an_error(bench: Bench) -> None:
    first, second = bench.batch(0, 0, [reading(1)]), bench.batch(0, 2, [reading(3)])
    with pytest.raises(SequenceGapError, match="Slice 0 delivered 2 messages for offsets 1 to 3"):
        list(write_files(bench.settings, iter([first, second])))


def test_a_device_that_forgot_too_many_boots_is_looked_up_in_the_table(bench: Bench) -> None:
    after = 0
    for boot in range(1, 8):
        bench.write(0, after, [reading(1, boot)])
        after += 1
    bench.write(0, after, [reading(1, boot=1), reading(2, boot=1)])
    assert bench.table("readings").num_rows == 8


def test_a_new_slice_is_loaded_while_the_tasks_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    bench.restart(2)
    bench.sink._owned = lambda: {0: 2, 1: 2}
    bench.sink._load_ahead()
    monkeypatch.setattr("tidegate.pipeline.tables.sink.load_known", lambda *_: pytest.fail("loaded twice"))
    bench.write(0, 2, [reading(2), reading(3)])
    assert bench.sequences() == [1, 2, 3]
