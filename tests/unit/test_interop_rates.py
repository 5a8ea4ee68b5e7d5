"""Whether two rates differ: known tables, sides that are simulated, and what so many plays can see."""

import asyncio
import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_bench.interop.rates import LEVEL, LOOKS, Tally, decide, fisher, p_value, plays_wanted
from tidegate_bench.interop.repeating import in_turn, tallies

# About as many as the bench compares.
BEHAVIOURS = 330


@pytest.mark.parametrize(
    ("table", "p"),
    [
        pytest.param((3, 4, 1, 4), 0.4857142857, id="the lady who tastes tea, two-sided"),
        pytest.param((8, 10, 1, 6), 0.0349650350, id="8 of 10 and 1 of 6"),
        pytest.param((1, 12, 9, 12), 0.0027594562, id="1 of 12 and 9 of 12"),
        pytest.param((20, 20, 0, 20), 2 / 137_846_528_820, id="always and never: two of all ways to choose 20 of 40"),
        pytest.param((0, 20, 0, 20), 1.0, id="never on either side"),
        pytest.param((5, 10, 5, 10), 1.0, id="as often"),
        pytest.param((26, 3_960, 6, 1_084), 0.8312384289, id="a broker that loses one message in 150, either way"),
    ],
)
def test_fishers_test_gives_the_known_values(table: tuple[int, int, int, int], p: float) -> None:
    assert fisher(*table) == pytest.approx(p, rel=1e-7)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_it_does_not_matter_which_side_or_outcome_is_counted(first: int, second: int, data: st.DataObject) -> None:
    found, other = data.draw(st.integers(0, first)), data.draw(st.integers(0, second))
    p = fisher(found, first, other, second)
    assert 0.0 < p <= 1.0
    assert fisher(other, second, found, first) == p
    assert fisher(first - found, first, second - other, second) == p


@given(st.integers(1, 60), st.floats(0.001, 1.0))
def test_equal_sides_are_called_different_no_more_often_than_the_level(plays: int, level: float) -> None:
    """Exactly, for every number of outcomes on both sides together: the tables the test rejects are that rare."""
    both = plays // 2
    total = sum(_ways(plays, count, both) for count in range(both + 1))
    rejected = sum(_ways(plays, n, both) for n in range(both + 1) if fisher(n, plays, both - n, plays) <= level)
    assert rejected / total <= level * (1 + 1e-12)


def _ways(plays: int, count: int, both: int) -> int:
    return math.comb(plays, count) * math.comb(plays, both - count)


def counts(usual: int, **others: int) -> Counter[str]:
    return Counter({"as usual": usual, **others})


@pytest.mark.parametrize(
    ("direct", "through", "same"),
    [
        pytest.param(counts(20), counts(20), True, id="the first plays differed by chance"),
        pytest.param(counts(3_934, lost=26), counts(1_078, lost=6), True, id="the flake that is the broker's own"),
        pytest.param(counts(20), counts(0, other=20), False, id="always otherwise"),
        pytest.param(counts(20), counts(6, lost=14), False, id="mostly otherwise"),
        pytest.param(counts(10, lost=10), counts(0, lost=20), None, id="more often, but not enough to tell"),
        pytest.param(counts(20), counts(16, lost=4), None, id="sometimes, where the broker never does"),
        pytest.param(counts(180), counts(176, lost=4), True, id="in the end it is within chance"),
        pytest.param(counts(180), counts(160, lost=20), False, id="in the end one in nine is not"),
        pytest.param(counts(90, late=90), counts(90, lost=90), False, id="as often otherwise, but in another way"),
        pytest.param(counts(19), counts(0, other=19), None, id="never before twenty plays"),
    ],
)
def test_counts_decide(direct: Counter[str], through: Counter[str], same: bool | None) -> None:
    tally = Tally(direct, through)
    assert decide(tally, BEHAVIOURS).same is same
    assert (plays_wanted(tally, BEHAVIOURS) > 0) == (same is None)


def test_what_was_observed_only_once_tells_nothing() -> None:
    once = Counter({f"error {number}": 1 for number in range(10)})
    assert p_value(Tally(counts(10) + once, counts(20))) < 0.01
    assert p_value(Tally(Counter({"a": 1}), Counter({"b": 1}))) == 1.0


def simulated(rate_direct: float, rate_through: float, seed: int) -> Tally:
    """The whole procedure, with sides that fail at such rates."""
    chance = random.Random(seed)

    async def play(_: str, through: bool) -> str:
        return "lost" if chance.random() < (rate_through if through else rate_direct) else "as usual"

    turns = asyncio.Semaphore(8)
    found = tallies(["one"], play, behaviours=BEHAVIOURS, turns=turns, tell=lambda _: None)
    return asyncio.run(found)["one"]


def shares_found(rate_direct: float, rate_through: float, runs: int = 40) -> float:
    found = [decide(simulated(rate_direct, rate_through, seed), BEHAVIOURS).same for seed in range(runs)]
    assert None not in found
    return found.count(False) / runs


@pytest.mark.parametrize(
    ("rate_direct", "rate_through", "lowest", "highest"),
    [
        pytest.param(26 / 3_960, 6 / 1_084, 0.0, 0.0, id="the broker's own flake is never blamed on the gateway"),
        pytest.param(0.3, 0.3, 0.0, 0.0, id="nor is one that happens all the time"),
        pytest.param(0.0, 1.0, 1.0, 1.0, id="a systematic difference is always found"),
        pytest.param(26 / 3_960, 0.9, 1.0, 1.0, id="also beside a flake"),
        pytest.param(0.0, 0.4, 0.9, 1.0, id="four of ten plays are found nearly always"),
    ],
)
def test_simulated_sides(rate_direct: float, rate_through: float, lowest: float, highest: float) -> None:
    assert lowest <= shares_found(rate_direct, rate_through) <= highest


@pytest.mark.parametrize(
    ("plays", "fewest"), [pytest.param(20, 14, id="20"), pytest.param(60, 16, id="60"), pytest.param(180, 18, id="180")]
)
def test_how_many_plays_see_how_much_is_as_documented(plays: int, fewest: int) -> None:
    """Where the broker alone never does it: the fewest plays through the gateway that prove a difference."""

    def proves(otherwise: int) -> bool:
        return fisher(0, plays, otherwise, plays) * BEHAVIOURS * len(LOOKS) < LEVEL

    assert not proves(fewest - 1)
    assert proves(fewest)


def test_plays_end_when_it_is_decided_and_never_go_on_for_ever() -> None:
    assert simulated(0.0, 1.0, seed=1).plays == LOOKS[0]
    assert simulated(0.0, 0.0, seed=1).plays == LOOKS[0]
    assert max(simulated(0.05, 0.15, seed).plays for seed in range(30)) == LOOKS[-1]


def test_out_of_time_is_not_the_same() -> None:
    async def play(_: str, through: bool) -> str:
        await asyncio.sleep(0.01)
        return "as usual"

    found = asyncio.run(
        tallies(["one"], play, behaviours=1, turns=asyncio.Semaphore(1), tell=lambda _: None, seconds_max=0.05)
    )
    assert found["one"].plays < LOOKS[0]
    assert decide(found["one"], 1).same is None


def test_sides_take_turns_and_swap_who_is_first() -> None:
    order = list(in_turn({"a": 20, "b": 20, "c": 0}))
    assert Counter(order) == {(name, side): 20 for name in "ab" for side in (False, True)}
    assert {first[0] for first, second in pairwise(order) if first[0] == second[0]} == {"a", "b"}
    assert Counter(side for name, side in order[::2] if name == "a") == {False: 10, True: 10}
