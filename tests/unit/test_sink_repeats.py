"""What comes again is stored once, whatever boots and sequences do: the sink without Spark around it."""

import time

import pyarrow as pa
from sinking import DAY_S, WINDOW_S, Bench, reading

from tidegate.pipeline.transforms.means import merge


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


def test_a_repeat_without_a_time_is_a_repeat_although_it_arrives_later(bench: Bench) -> None:
    bench.write(0, 0, [b'{"boot":1,"seq":1,"value":7}'])
    bench.arrived_s += 60
    bench.write(0, 1, [b'{"boot":1,"seq":1,"value":7}'])
    assert bench.sequences() == [1]
    assert bench.table("rejected").num_rows == 0


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
