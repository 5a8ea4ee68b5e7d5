"""How a batch is cut: within the limit, fair, and nothing left out."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.sources.sharing import share_rows
from tidegate.pipeline.sources.slices import PARTITION_ROWS_MIN, group_ranges

waiting_rows = st.dictionaries(st.integers(0, 63), st.integers(0, 1000), min_size=1)
message_sizes = st.dictionaries(st.integers(0, 63), st.floats(1.0, 100_000.0))
NO_SIZES: dict[int, float] = {}
ANY = 1 << 40


@given(waiting_rows, st.integers(0, 20_000))
def test_shares_stay_within_the_limit_and_use_it_up(waiting: dict[int, int], limit: int) -> None:
    taken = share_rows(waiting, NO_SIZES, limit, ANY)
    assert all(0 <= taken[slice_] <= waiting[slice_] for slice_ in waiting)
    assert sum(taken.values()) == min(limit, sum(waiting.values()))


@given(waiting_rows, st.integers(1, 20_000))
def test_a_slice_that_wants_little_gets_all_of_it(waiting: dict[int, int], limit: int) -> None:
    taken = share_rows(waiting, NO_SIZES, limit, ANY)
    for slice_, count in waiting.items():
        if count <= limit // len(waiting):
            assert taken[slice_] == count


@given(waiting_rows, message_sizes, st.integers(64, 20_000), st.integers(1, 1_000_000))
def test_bytes_are_a_limit_as_well_but_every_slice_that_has_something_gets_on(
    waiting: dict[int, int], sizes: dict[int, float], rows_max: int, bytes_max: int
) -> None:
    taken = share_rows(waiting, sizes, rows_max, bytes_max)
    without = share_rows(waiting, sizes, rows_max, ANY)
    assert all(min(1, count) <= taken[slice_] <= without[slice_] for slice_, count in waiting.items())
    beyond_one = {slice_: count for slice_, count in taken.items() if count > 1}
    assert sum(count * sizes.get(slice_, 1.0) for slice_, count in beyond_one.items()) <= bytes_max + len(waiting)
    if sum(count * sizes.get(slice_, 1.0) for slice_, count in without.items()) < bytes_max - len(waiting):
        assert taken == without


def test_a_slice_of_small_messages_is_not_cut_because_another_has_large_ones() -> None:
    assert share_rows({0: 5_000, 1: 5_000}, {0: 60_000.0, 1: 200.0}, 400_000, 16 << 20) == {0: 262, 1: 5_000}


def test_a_message_that_is_larger_than_all_bytes_gets_through() -> None:
    assert share_rows({0: 9, 1: 0}, {0: 60_000.0, 1: 60_000.0}, 400_000, 1) == {0: 1, 1: 0}


ranges = st.lists(st.integers(1, 50_000), min_size=1, max_size=64).map(
    lambda sizes: [(slice_, 1, 0, size) for slice_, size in enumerate(sizes)]
)


@given(ranges, st.integers(1, 8), message_sizes)
def test_partitions_hold_every_slice_once_and_are_no_more_than_cores(
    wanted: list[tuple[int, int, int, int]], cores: int, sizes: dict[int, float]
) -> None:
    groups = group_ranges(wanted, cores, sizes)
    assert sorted(one for group in groups for one in group) == sorted(wanted)
    assert 1 <= len(groups) <= cores
    assert all(groups)
    if sum(to for _, _, _, to in wanted) < 2 * PARTITION_ROWS_MIN:
        assert len(group_ranges(wanted, cores, NO_SIZES)) == 1


def test_few_large_messages_are_work_for_two_cores() -> None:
    """Each slice has 500 messages; two are large, and go to different tasks."""
    wanted = [(slice_, 1, 0, 500) for slice_ in range(4)]
    assert len(group_ranges(wanted, 2, NO_SIZES)) == 1
    groups = group_ranges(wanted, 2, {1: 60_000.0, 3: 60_000.0, 0: 200.0})
    assert sorted(sorted(one[0] for one in group) for group in groups) in ([[0, 1], [2, 3]], [[0, 3], [1, 2]])


def test_no_ranges_are_no_partitions() -> None:
    assert group_ranges([], 4, NO_SIZES) == []
