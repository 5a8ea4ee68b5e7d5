"""A bucket by hand: what it lets through when, and who is next."""

import pytest

from tidegate.control.limiting.token_bucket import TokenBucket


def emptied(rate_per_s: float = 2.0, burst: float = 3.0) -> TokenBucket:
    bucket = TokenBucket(rate_per_s, burst, 100.0)
    assert bucket.take(burst, 100.0)
    return bucket


def test_a_burst_passes_and_then_the_rate() -> None:
    bucket = TokenBucket(2.0, 3.0, 0.0)
    passed_s = [tick / 10 for tick in range(31) if bucket.take(1, tick / 10)]
    assert passed_s == [0.0, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def test_no_more_than_the_burst_is_kept() -> None:
    bucket = emptied()
    assert bucket.take(3, 1000.0)
    assert not bucket.take(0.1, 1000.0)


@pytest.mark.parametrize(
    ("cost", "now_s", "wait_s"),
    [
        pytest.param(1, 100.0, 0.5, id="one token at two a second"),
        pytest.param(1, 100.25, 0.25, id="half of it is there"),
        pytest.param(1, 100.5, 0.0, id="there"),
        pytest.param(0, 100.0, 0.0, id="what costs nothing passes"),
        pytest.param(5, 100.0, 1.5, id="more than fits in waits until it is full"),
        pytest.param(1, 99.0, 0.5, id="a clock that went back"),
    ],
)
def test_how_long_to_wait(cost: float, now_s: float, wait_s: float) -> None:
    bucket = emptied()
    assert bucket.wait_s(cost, now_s) == pytest.approx(wait_s)
    assert bucket.take(cost, now_s) == (wait_s == 0)


def test_a_message_larger_than_the_burst_passes_when_full_and_is_paid_for_later() -> None:
    bucket = TokenBucket(2.0, 3.0, 0.0)
    assert bucket.take(7, 0.0)
    assert bucket.wait_s(1, 0.0) == pytest.approx(2.5)
    assert not bucket.take(7, 3.4)
    assert bucket.take(7, 3.5)


def test_a_clock_that_goes_back_gives_and_takes_nothing() -> None:
    bucket = emptied()
    assert not bucket.take(1, 50.0)
    assert not bucket.take(1, 100.4), "the time from 50 to 100 was counted already"
    assert bucket.take(1, 100.5)


@pytest.mark.parametrize(
    ("rate_per_s", "burst", "wait_s"),
    [
        pytest.param(4.0, 3.0, 0.25, id="faster"),
        pytest.param(0.5, 3.0, 2.0, id="slower"),
        pytest.param(2.0, 0.5, 0.25, id="a smaller bucket"),
    ],
)
def test_rate_and_burst_change_at_a_time(rate_per_s: float, burst: float, wait_s: float) -> None:
    bucket = emptied()
    assert bucket.take(1, 100.5), "until here at the old rate"
    bucket.change(rate_per_s, burst, 100.5)
    assert bucket.wait_s(1, 100.5) == pytest.approx(wait_s)


def test_a_smaller_bucket_keeps_no_more_than_fits_in() -> None:
    bucket = TokenBucket(2.0, 3.0, 0.0)
    bucket.change(2.0, 1.0, 0.0)
    assert bucket.take(1, 0.0)
    assert not bucket.take(1, 0.0)


def test_places_in_line_are_in_the_order_of_asking_and_nobody_passes_by() -> None:
    bucket = emptied()
    assert [bucket.reserve(1, 100.0) for _ in range(3)] == pytest.approx([100.5, 101.0, 101.5])
    assert not bucket.take(1, 101.4)
    assert bucket.reserve(1, 101.5) == pytest.approx(102.0)
    assert not bucket.take(1, 102.4)
    assert bucket.take(1, 102.5)


def test_who_finds_tokens_has_its_place_at_once() -> None:
    bucket = TokenBucket(2.0, 2.0, 0.0)
    assert [bucket.reserve(1, 5.0) for _ in range(3)] == pytest.approx([5.0, 5.0, 5.5])


def test_a_place_as_of_a_moment_that_has_passed() -> None:
    """A late timer costs nothing: the next in line asks as of when it became the first."""
    bucket = emptied(burst=1.0)
    assert bucket.reserve(1, 100.0) == pytest.approx(100.5)
    assert bucket.reserve(1, 100.5) == pytest.approx(101.0)
    bucket.take(0, 107.0)
    assert bucket.reserve(1, 101.0) == 101.0, "somebody else looked meanwhile, and a token was there"


def test_what_is_given_back_is_there_for_others() -> None:
    bucket = emptied()
    bucket.reserve(1, 100.0)
    bucket.reserve(1, 100.0)
    bucket.give_back(1)
    assert bucket.reserve(1, 100.0) == pytest.approx(101.0)
    full = TokenBucket(2.0, 3.0, 0.0)
    full.give_back(1)
    assert full.take(3, 0.0)
    assert not full.take(1, 0.0), "never more than the burst"
