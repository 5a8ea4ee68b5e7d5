"""How a batch is cut: within the limit, fair, and nothing left out."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.sources.slices import PARTITION_ROWS_MIN, group_ranges, share_rows

spans = st.dictionaries(
    st.integers(0, 63),
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)).map(lambda p: (p[0], p[0] + p[1])),
    min_size=1,
)


@given(spans, st.integers(0, 20_000))
def test_shares_stay_within_the_limit_and_use_it_up(wanted: dict[int, tuple[int, int]], limit: int) -> None:
    reach = share_rows(wanted, limit)
    taken = {slice_: reach[slice_] - after for slice_, (after, _) in wanted.items()}
    available = {slice_: end - after for slice_, (after, end) in wanted.items()}
    assert all(0 <= taken[slice_] <= available[slice_] for slice_ in wanted)
    assert sum(taken.values()) == min(limit, sum(available.values()))


@given(spans, st.integers(1, 20_000))
def test_a_slice_that_wants_little_gets_all_of_it(wanted: dict[int, tuple[int, int]], limit: int) -> None:
    reach = share_rows(wanted, limit)
    for slice_, (after, end) in wanted.items():
        if end - after <= limit // len(wanted):
            assert reach[slice_] == end


def test_a_log_that_went_back_is_not_read_backwards() -> None:
    assert share_rows({0: (10, 4)}, 100) == {0: 10}


ranges = st.lists(st.integers(1, 50_000), min_size=1, max_size=64).map(
    lambda sizes: [(slice_, 1, 0, size) for slice_, size in enumerate(sizes)]
)


@given(ranges, st.integers(1, 8))
def test_partitions_hold_every_slice_once_and_are_no_more_than_cores(
    wanted: list[tuple[int, int, int, int]], cores: int
) -> None:
    groups = group_ranges(wanted, cores)
    assert sorted(one for group in groups for one in group) == sorted(wanted)
    assert 1 <= len(groups) <= cores
    assert all(groups)
    if sum(to for _, _, _, to in wanted) < 2 * PARTITION_ROWS_MIN:
        assert len(groups) == 1


def test_no_ranges_are_no_partitions() -> None:
    assert group_ranges([], 4) == []
