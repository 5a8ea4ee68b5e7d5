"""From log rows to tables, crashes in between included: the sink without Spark around it."""

import dataclasses
import json
import os
import pickle
import re
import shutil
import time
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidegate.model.errors import FencedError, SequenceGapError, TidegateError
from tidegate.pipeline.maintenance.log import clean, listing
from tidegate.pipeline.tables import writing
from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import TaskResult, TaskSettings, write_files
from tidegate.pipeline.transforms.means import merge

WINDOW_S = 10


class Bench:
    """Tables in a directory, and a sink that can die and come back."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = TaskSettings(directory, WINDOW_S, 0.0, False)
        self.arrived_s = 1_000_000.0
        self.alarms: list[str | None] = []
        self.sink = self.restart(1)

    def restart(self, epoch: int, slices: int = 2) -> Sink:
        self.epoch = epoch
        tables = Tables(self.directory)
        self.offsets = tables.claim(dict.fromkeys(range(slices), epoch))
        self.sink = Sink(tables, self.settings, 3600.0, alarm=self.alarms.append)
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
            pa.array([after] * count, pa.int64()),
            pa.array([f"telemetry/device-{slice_}"] * count, pa.string()),
            pa.array([round(self.arrived_s * 1e6)] * count, pa.timestamp("us", tz="UTC")),
            pa.array(payloads, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(
            columns, names=["slice", "epoch", "offset", "after", "topic", "arrived", "payload"]
        )

    def write(self, slice_: int, after: int, payloads: list[bytes]) -> None:
        result = self.task(slice_, after, payloads)
        self.sink.commit_results([result])
        self.sink.settle()
        self.repeats = result.repeats

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
    assert bench.repeats == 2


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
    whole = bench.batch(0, 0, [reading(1), reading(2), reading(3)])
    with pytest.raises(SequenceGapError, match="Slice 0 delivered 2 messages behind 0 up to 3"):
        list(write_files(bench.settings, iter([whole.slice(0, 1), whole.slice(2)])))


def test_boots_may_hop(bench: Bench) -> None:
    for after, boot in enumerate((5, 1, 7, 3, 2, 9, 4)):
        bench.write(0, after, [reading(1, boot)])
    bench.write(0, 7, [reading(1, boot=1), reading(2, boot=1), reading(1, boot=9)])
    assert bench.table("readings").num_rows == 8
    assert bench.repeats == 2


def test_sequences_may_have_gaps(bench: Bench) -> None:
    sparse = [reading(seq) for seq in range(0, 200, 2)]
    bench.write(0, 0, sparse)
    bench.write(0, 100, sparse)
    assert bench.sequences() == list(range(0, 200, 2))
    assert bench.repeats == 100


def test_gaps_that_are_filled_later_are_stored(bench: Bench) -> None:
    bench.write(0, 0, [reading(seq) for seq in range(0, 200, 2)])
    bench.write(0, 100, [reading(seq) for seq in range(200)])
    assert bench.sequences() == list(range(200))


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


# -- another payload under a used identity, and readings from before all memory


def test_the_same_identity_with_another_payload_is_rejected_with_both_digests(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    other = b'{"boot":1,"seq":2,"time":2,"value":99.0,"unit":"K"}'
    bench.write(0, 2, [other, reading(3)])
    assert bench.sequences() == [1, 2, 3]
    (row,) = bench.table("rejected").to_pylist()
    digests = re.findall("[0-9a-f]{16}", row["reason"])
    assert row["reason"].startswith("identity used twice: boot 1, seq 2, stored digest ")
    assert len(set(digests)) == 2
    assert json.loads(row["payload"]) == {"boot": 1, "seq": 2, "time": 2.0, "value": 99.0, "unit": "K"}
    assert bench.repeats == 0


def test_two_payloads_under_one_identity_in_one_batch(bench: Bench) -> None:
    result = bench.task(0, 0, [reading(1), b'{"boot":1,"seq":1,"time":1,"value":7}', reading(1)])
    bench.sink.commit_results([result])
    assert bench.sequences() == [1]
    assert (result.repeats, result.rejects) == (1, {("device-0", "identity used twice"): 1})
    assert bench.table("rejected")["offset"].to_pylist() == [2]


def test_a_repeat_without_a_time_is_a_repeat_although_it_arrives_later(bench: Bench) -> None:
    bench.write(0, 0, [b'{"boot":1,"seq":1,"value":7}'])
    bench.arrived_s += 60
    bench.write(0, 1, [b'{"boot":1,"seq":1,"value":7}'])
    assert bench.sequences() == [1]
    assert bench.table("rejected").num_rows == 0


DAY_S = 86_400
NOW_S = 1_760_000_000


def taken(seq: int, days_ago: float, boot: int = 1) -> bytes:
    return json.dumps({"boot": boot, "seq": seq, "time": NOW_S - days_ago * DAY_S, "value": 1.5}).encode()


def test_a_brokers_clock_that_is_far_ahead_hides_nothing_that_is_stored(bench: Bench) -> None:
    now_s = time.time()
    bench.arrived_s = now_s
    bench.write(0, 0, [b'{"boot":1,"seq":1,"value":7}'])
    bench.arrived_s = now_s + 60 * DAY_S
    bench.write(0, 1, [b'{"boot":1,"seq":1,"value":7}'])
    bench.restart(2)  # from here on the past is doubtful, as nothing was written down
    bench.write(0, 2, [b'{"boot":1,"seq":2,"value":7}'])
    bench.restart(3)
    bench.arrived_s = now_s + 120 * DAY_S
    bench.write(0, 3, [b'{"boot":1,"seq":1,"value":7}', b'{"boot":1,"seq":2,"value":7}'])
    assert bench.sequences() == [1, 2]


def test_what_is_older_than_the_horizon_is_rejected(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [taken(1, 0), taken(2, 29)])
    bench.write(0, 2, [taken(3, 40), taken(1, 40), taken(1, 40, boot=2)])
    bench.write(0, 5, [taken(2, 40, boot=2)])
    assert bench.sequences() == [1, 2]
    reasons = bench.table("rejected")["reason"].to_pylist()
    assert {reason.partition(":")[0] for reason in reasons} == {"too old"}
    assert len(reasons) == 4
    assert "identities are remembered for 30 days" in reasons[0]


def test_an_old_reading_without_identity_is_stored(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [json.dumps({"value": 1, "time": NOW_S - 40 * DAY_S}).encode()])
    assert bench.table("readings").num_rows == 1


def test_a_clock_that_was_never_set_is_not_too_old(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [b'{"boot":1,"seq":1,"time":12,"value":7}', b'{"boot":2,"seq":1,"time":946684800,"value":7}'])
    assert bench.sequences() == [1, 1]


def test_looking_two_readings_up_takes_no_memory_for_all_that_lie_between_them(bench: Bench) -> None:
    large = b'{"boot":1,"seq":%d,"value":1,"said":"' + b"x" * 60_000 + b'"}'
    for after in (0, 1000, 2000):
        bench.write(0, after, [large % seq for seq in range(after, after + 1000)])  # 180 MB, in files of 14 kB each
    result = bench.task(0, 3000, [large % 0, b'{"boot":1,"seq":2999,"value":2}'])
    before, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        bench.sink.commit_results([result])
    finally:
        pa.set_memory_pool(before)
    bench.sink.settle()
    assert (result.repeats, bench.table("rejected").num_rows) == (1, 1)
    assert counted.max_memory() < 100_000_000


# -- snapshots


@pytest.mark.parametrize("damage", [b"", b"x" * 10, None])
def test_a_damaged_or_lost_snapshot_makes_the_past_doubtful_and_no_start_fails(
    bench: Bench, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1), reading(2)])
    bench.write(0, 2, [reading(3)])
    for path in (bench.directory / "identities" / "slice-0").iterdir():
        path.unlink() if damage is None else path.write_bytes(damage)
    bench.restart(2)
    read = bench.sink._tables.readings.rows
    asked: list[int] = []
    monkeypatch.setattr(bench.sink._tables.readings, "rows", lambda *a: asked.append(a[2]) or read(*a))
    bench.write(0, 3, [reading(2), reading(4), reading(9, boot=2)])
    bench.write(0, 6, [reading(3), reading(4), reading(5), reading(9, boot=2)])
    assert bench.sequences() == [1, 2, 3, 4, 5, 9]
    assert asked == []  # nothing is read again from the beginning
    assert "Devices are looked up in the table as they come by" in str(bench.alarms)


def test_a_flipped_bit_in_a_snapshot_is_noticed(bench: Bench) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    for path in (bench.directory / "identities" / "slice-0").iterdir():
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
    bench.restart(2)
    bench.write(0, 1, [reading(1)])
    assert "its checksum is wrong" in str(bench.alarms)
    assert bench.sequences() == [1]


def test_a_new_slice_of_which_nothing_is_written_down_yet_is_read_whole(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    bench.restart(2)
    bench.write(0, 2, [reading(2), reading(3)])
    assert bench.sequences() == [1, 2, 3]
    assert bench.alarms == []
    assert bench.sink._seen[0].doubted_until_day == 0


def test_the_alarm_ends_when_identities_are_written_down_again(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    (bench.directory / "identities" / "slice-0").mkdir(parents=True)  # there was something, and it is lost
    bench.restart(2)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 1, [reading(2)])
    bench.write(0, 2, [reading(3)])
    assert "are not written down" in str(bench.alarms[0])
    assert bench.alarms[-1] is None


def test_doubt_outlives_the_next_snapshot(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(1, boot=2)])
    (bench.directory / "identities" / "slice-0").mkdir(parents=True)
    bench.restart(2)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 2, [reading(2)])
    bench.write(0, 3, [reading(3)])
    bench.restart(3)
    bench.write(0, 4, [reading(1, boot=2)])
    assert bench.table("readings").num_rows == 4


def test_a_snapshot_of_what_a_table_has_lost_is_not_used_when_it_comes_to_that_offset_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    before = shutil.copytree(bench.directory, bench.directory.parent / "before")
    for after in range(1, 5):
        bench.write(0, after, [reading(1 + after)])
    for table in ("readings", "means", "rejected"):  # a power failure takes what was committed last, and spares a file
        shutil.rmtree(bench.directory / table)
        shutil.copytree(before / table, bench.directory / table)
    bench.restart(2)
    bench.write(0, 1, [reading(seq) for seq in range(11, 16)])
    bench.restart(3)
    bench.write(0, 6, [reading(seq) for seq in range(11, 17)])
    assert bench.sequences() == [1, 11, 12, 13, 14, 15, 16]


def test_a_driver_that_lost_its_slice_removes_no_snapshot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    zombie, late = bench.restart(2), bench.task(0, 1, [reading(9)])
    bench.restart(3)._snapshot_s = 0.0
    for after in (1, 2, 3):
        bench.write(0, after, [reading(1 + after)])
    written = {path.name for path in (bench.directory / "identities" / "slice-0").iterdir()}
    with pytest.raises(FencedError):
        zombie.commit_results([late])
    assert {path.name for path in (bench.directory / "identities" / "slice-0").iterdir()} == written


def test_what_killed_drivers_left_half_written_is_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    old, young = (bench.directory / "identities" / "slice-0" / name for name in ("0000.4711", "0000.4712"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1_000, 1_000))
    bench.write(0, 1, [reading(2)])
    assert young.exists()
    assert not old.exists()


# -- batches that are committed together


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


# -- tasks that write in parts


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


# -- the message before the first one


def with_proof(bench: Bench, after: int, payloads: list[bytes]) -> TaskResult:
    """A batch that carries the message at ``after`` along."""
    batch = bench.batch(0, after - 1, payloads)
    columns = [
        batch.column(name) if name != "after" else pa.array([after] * len(payloads)) for name in batch.schema.names
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    (written,) = write_files(bench.settings, iter([batch]))
    result: TaskResult = pickle.loads(written.column("result")[0].as_py())
    return result


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


def test_topic_and_unknown_fields_are_stored(bench: Bench) -> None:
    bench.write(0, 0, [b'{"boot":1,"seq":1,"value":7,"unit":"K","nested":{"a":[1]}}', reading(2)])
    rows = bench.table("readings").sort_by("seq").to_pylist()
    assert [row["topic"] for row in rows] == ["telemetry/device-0"] * 2
    assert json.loads(rows[0]["extra"]) == {"unit": "K", "nested": {"a": [1]}}
    assert rows[1]["extra"] is None


def test_what_a_device_writes_into_unknown_fields_does_not_fill_the_tables_log(bench: Bench) -> None:
    large = b'{"boot":1,"seq":%d,"value":1,"said":"' + b"x" * 60_000 + b'"}'
    bench.write(0, 0, [large % 1, reading(2)])
    bench.write(0, 2, [large % 1, large % 3])
    assert bench.sequences() == [1, 2, 3]
    for path in (bench.directory / "readings" / "_delta_log").glob("*.json"):
        assert path.stat().st_size < 8_000


def test_a_batch_around_midnight_goes_to_two_dates(bench: Bench) -> None:
    bench.arrived_s = NOW_S - NOW_S % DAY_S - 1
    first = bench.batch(0, 0, [reading(1)])
    bench.arrived_s += 2
    both = [first, bench.batch(0, 0, [reading(0), reading(2)]).slice(1)]
    (written,) = write_files(bench.settings, iter(both))
    result: TaskResult = pickle.loads(written.column("result")[0].as_py())
    assert len(result.readings) == 2
    bench.sink.commit_results([result])
    assert sorted(str(day) for day in bench.table("readings")["date"].to_pylist()) == ["2025-10-08", "2025-10-09"]
