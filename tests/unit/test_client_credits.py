"""One client's credits and turns, by hand."""

import pytest

from tidegate.control.limiting.credits import (
    BURST,
    OWN_CREDITS,
    OWN_RATE,
    TOLERANCE,
    ClientCredits,
    cost_of,
    refill_share,
)


def passes(credits: ClientCredits, now_s: float, wanted: int = 100) -> int:
    """How many publishes of one credit each pass at that moment."""
    return sum(credits.take(1, 1, now_s) for _ in range(wanted))


def limited(rate_per_s: float = 1 / TOLERANCE) -> ClientCredits:
    """Held to one turn a second; they are used up at 0 s."""
    credits = ClientCredits(1000.0, 1000.0, 0.0)
    credits.limit(rate_per_s, 0.0)
    assert passes(credits, 0.0) == BURST
    return credits


@pytest.mark.parametrize(("size", "cost"), [(0, 1), (4095, 1), (4096, 2), (1024**2, 257)])
def test_what_a_publish_costs(size: int, cost: int) -> None:
    assert cost_of(size) == cost


def test_credits_come_back_slower_the_later_the_gateway_is() -> None:
    shares = [refill_share(level) for level in range(11)]
    assert shares[0] == 1.0
    assert shares[5] == pytest.approx(0.1)
    assert shares[10] == pytest.approx(0.01)
    assert shares == sorted(shares, reverse=True)
    assert (refill_share(-1), refill_share(11)) == (shares[0], shares[10])


@pytest.mark.parametrize(("level", "passed"), [(0, 10), (5, 1), (10, 0)])
def test_at_a_level_so_many_pass_in_a_second(level: int, passed: int) -> None:
    credits = ClientCredits(20.0, 10.0, 0.0, level=level)
    assert passes(credits, 0.0) == 20
    assert passes(credits, 1.0) == passed


def test_the_level_counts_from_its_moment_on() -> None:
    credits = ClientCredits(100.0, 10.0, 0.0)
    passes(credits, 0.0)
    credits.overload(10, 2.0)
    assert passes(credits, 12.0) == 21  # twenty of the two seconds before, one of the ten after


def test_all_of_a_chunk_passes_or_nothing_of_it() -> None:
    credits = ClientCredits(10.0, 1.0, 0.0)
    assert not credits.take(11, 11, 0.0)
    assert credits.take(10, 10, 0.0)


def test_one_publish_that_costs_more_than_there_can_be_passes_when_all_are_there() -> None:
    credits = ClientCredits(4.0, 1.0, 0.0)
    assert credits.take(1, 9, 0.0)
    assert credits.wait_s(9, 0.0) == pytest.approx(9.0)
    assert not credits.take(1, 9, 8.9)
    assert not credits.take(2, 9, 9.0), "a chunk of several can be taken apart"
    assert credits.take(1, 9, 9.0)


def test_turns_are_for_publishes_however_large() -> None:
    credits = limited()
    assert credits.wait_s(50, 0.0) == pytest.approx(1.0)
    assert credits.take(1, 50, 1.0)


@pytest.mark.parametrize(
    ("cost", "reason"), [pytest.param(1, OWN_RATE, id="turns"), pytest.param(5, OWN_CREDITS, id="credits")]
)
def test_why_it_waits(cost: int, reason: str) -> None:
    credits = ClientCredits(4.0, 1.0, 0.0)
    credits.limit(1.0, 0.0)
    passes(credits, 0.0, wanted=3)
    assert credits.reason(cost, 0.0) == reason


def test_a_rate_is_enforced_with_a_little_tolerance() -> None:
    credits = ClientCredits(1000.0, 1000.0, 0.0)
    credits.limit(2.0, 0.0)
    passed = sum(credits.take(1, 1, tick / 10) for tick in range(1000))
    assert passed == pytest.approx(BURST + 2.0 * TOLERANCE * 100, abs=1)


def test_a_lower_rate_counts_from_the_next_publish_on() -> None:
    credits = limited()
    credits.limit(0.25 / TOLERANCE, 0.0)
    assert credits.rate_per_s == pytest.approx(0.25 / TOLERANCE)
    assert credits.take(1, 1, 1.0), "it has not heard yet"
    # Three quarters of a turn are added, for the message that may come after the old interval; a quarter comes back.
    assert credits.wait_s(1, 1.0) == pytest.approx(1.0)
    assert credits.take(1, 1, 2.0)
    assert credits.wait_s(1, 2.0) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([4.0], id="a higher one"),
        pytest.param([0.1, 4.0], id="a lower one that was not heard of"),
    ],
)
def test_a_higher_rate_counts_at_once(rates: list[float]) -> None:
    credits = limited()
    for rate in rates:
        credits.limit(rate / TOLERANCE, 0.0)
    assert credits.wait_s(1, 0.0) == pytest.approx(0.25)
    assert credits.take(1, 1, 0.25)
    assert credits.wait_s(1, 0.25) == pytest.approx(0.25)


def test_without_a_limit_only_credits_count() -> None:
    credits = limited()
    credits.limit(None, 1.0)
    assert credits.rate_per_s is None
    assert passes(credits, 1.0) == 100
    credits.limit(1.0, 2.0)
    assert passes(credits, 2.0) == BURST


def test_who_comes_again_finds_what_it_left() -> None:
    credits = ClientCredits(100.0, 10.0, 0.0)
    credits.limit(1 / TOLERANCE, 0.0)
    assert passes(credits, 0.0) == BURST
    again = ClientCredits(100.0, 10.0, 1.5, credits.state(0.5))
    again.limit(1 / TOLERANCE, 1.5)
    assert passes(again, 1.5) == 1
    poor = ClientCredits(100.0, 10.0, 0.0)
    assert passes(poor, 0.0) == 100
    assert passes(ClientCredits(100.0, 10.0, 2.0, poor.state(1.0)), 2.0) == 20


def test_what_was_taken_and_is_not_used_is_there_again() -> None:
    credits = limited()
    assert credits.take(1, 7, 1.0)
    credits.give_back(1, 7)
    assert passes(credits, 1.0) == 1
