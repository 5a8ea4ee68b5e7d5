"""A bucket by hand: what it lets through when, and who is next."""

import pytest

from buckets import bucket
from tidegate.control.limiting.token_bucket import DRAUGHT_S, FULL, TokenBucket


def emptied(rate_per_s: float = 2.0, burst: float = 3.0) -> TokenBucket:
    one = bucket(rate_per_s, burst)
    assert one.take(burst, 100.0)
    return one


def test_a_burst_passes_and_then_the_rate() -> None:
    one = bucket(2.0, 3.0)
    passed_s = [tick / 10 for tick in range(31) if one.take(1, tick / 10)]
    assert passed_s == [0.0, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def test_no_more_than_the_burst_is_kept() -> None:
    one = emptied()
    assert one.take(3, 1000.0)
    assert not one.take(0.1, 1000.0)


@pytest.mark.parametrize(
    ("cost", "now_s", "wait_s"),
    [
        pytest.param(1, 100.0, 0.5, id="one token at two a second"),
        pytest.param(1, 100.25, 0.25, id="half of it is there"),
        pytest.param(1, 100.5, 0.0, id="there"),
        pytest.param(0, 100.0, 0.0, id="what costs nothing passes"),
        pytest.param(5, 100.0, 1.5, id="more than fits in waits until it is full"),
        pytest.param(1, 99.0, 1.5, id="a clock that went back: the same moment"),
    ],
)
def test_how_long_to_wait(cost: float, now_s: float, wait_s: float) -> None:
    one = emptied()
    assert one.wait_s(cost, now_s) == pytest.approx(wait_s)
    assert one.take(cost, now_s) == (wait_s == 0)


def test_a_message_larger_than_the_burst_passes_when_full_and_is_paid_for_later() -> None:
    one = bucket(2.0, 3.0)
    assert one.take(7, 0.0)
    assert one.wait_s(1, 0.0) == pytest.approx(2.5)
    assert not one.take(7, 3.4)
    assert one.take(7, 3.5)


def test_a_clock_that_goes_back_gives_and_takes_nothing() -> None:
    one = emptied()
    assert not one.take(1, 50.0)
    assert not one.take(1, 100.4), "the time from 50 to 100 was counted already"
    assert one.take(1, 100.5)


@pytest.mark.parametrize(
    ("rate_per_s", "burst", "wait_s"),
    [
        pytest.param(4.0, 3.0, 0.25, id="faster"),
        pytest.param(0.5, 3.0, 2.0, id="slower"),
        pytest.param(2.0, 0.5, 0.25, id="a smaller bucket"),
    ],
)
def test_the_same_cell_at_another_rate_or_with_another_burst(rate_per_s: float, burst: float, wait_s: float) -> None:
    cell = [FULL]
    before = bucket(2.0, 3.0, cell=cell)
    assert before.take(3, 100.0)
    assert before.take(1, 100.5), "until here at the old rate"
    assert bucket(rate_per_s, burst, cell=cell).wait_s(1, 100.5) == pytest.approx(wait_s)


def test_a_smaller_bucket_keeps_no_more_than_fits_in() -> None:
    cell = [FULL]
    larger = bucket(2.0, 3.0, cell=cell)
    assert larger.take(1, 0.0)
    larger.give_back(1)
    one = bucket(2.0, 1.0, cell=cell)
    assert one.take(1, 0.0)
    assert not one.take(1, 0.0), "of the three that were there it kept one"


def test_places_in_line_are_in_the_order_of_asking_and_nobody_passes_by() -> None:
    one = emptied()
    assert [one.reserve(1, 100.0) for _ in range(3)] == pytest.approx([100.5, 101.0, 101.5])
    assert not one.take(1, 101.4)
    assert one.reserve(1, 101.5) == pytest.approx(102.0)
    assert not one.take(1, 102.4)
    assert one.take(1, 102.5)


def test_who_finds_tokens_has_its_place_at_once() -> None:
    one = bucket(2.0, 2.0)
    assert [one.reserve(1, 5.0) for _ in range(3)] == pytest.approx([5.0, 5.0, 5.5])


def test_a_place_as_of_a_moment_that_has_passed() -> None:
    """A late timer costs nothing while nobody else looks: the next in line asks as of when it became the first."""
    one = emptied(burst=1.0)
    assert one.reserve(1, 100.0) == pytest.approx(100.5)
    assert one.reserve(1, 100.5) == pytest.approx(101.0)
    one.take(0, 107.0)
    assert one.reserve(1, 101.0) == pytest.approx(107.0), "somebody looked: as of then"


def test_what_is_given_back_is_there_for_others() -> None:
    one = emptied()
    one.reserve(1, 100.0)
    one.reserve(1, 100.0)
    one.give_back(1)
    assert one.reserve(1, 100.0) == pytest.approx(101.0)
    full = bucket(2.0, 3.0)
    full.give_back(1)
    assert full.take(3, 0.0)
    assert not full.take(1, 0.0), "never more than the burst"


def test_a_draught_is_spent_without_a_look_at_the_others_and_goes_back_when_it_is_old() -> None:
    cell = [FULL]
    one, other = (bucket(1_000.0, 40.0, cell=cell, processes=2) for _ in range(2))
    assert one.take(1, 10.0)
    drawn = cell[0]
    assert [one.take(1, 10.0 + DRAUGHT_S / 2) for _ in range(4)] == [True] * 4
    assert cell[0] == drawn, "five at a time: nobody else hears of them"
    assert one.take(1, 10.0 + DRAUGHT_S)
    assert cell[0] > drawn
    assert other.take(26, 11.0), "what fits in beside the draughts"
    assert one.take(8, 11.0), "four of its own that were old went back, beside the four that were left"
    assert not one.take(1, 11.0)


@pytest.mark.parametrize(
    ("rate_per_s", "burst", "processes", "most"),
    [
        pytest.param(1_000.0, 40.0, 1, 35.0, id="five milliseconds' worth is set apart"),
        pytest.param(1_000.0, 40.0, 2, 30.0, id="by each process"),
        pytest.param(10_000.0, 40.0, 2, 30.0, id="at most a quarter of the burst by all of them"),
        pytest.param(1_000.0, 40.0, 8, 40.0, id="too little to be worth it"),
        pytest.param(100.0, 40.0, 1, 40.0, id="too slow to be worth it"),
    ],
)
def test_what_is_set_apart_for_draughts(rate_per_s: float, burst: float, processes: int, most: float) -> None:
    one = bucket(rate_per_s, burst, processes=processes)
    reserved_s = [one.reserve(1, 10.0) for _ in range(int(burst) + 1)]
    assert sum(at_s == pytest.approx(10.0) for at_s in reserved_s) == most
