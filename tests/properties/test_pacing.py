"""However advice comes and goes, a device sends no more often than its default and than it was advised."""

import math
import random

from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.devices.pacing import CATCH_UP, Pacing
from tidegate.model.advice import Advice

DEFAULT_S = 0.5
ROUNDING = 1e-9
ADVICE = st.builds(
    Advice,
    interval_s=st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]) | st.floats(0, 20),
    lifetime_s=st.sampled_from([0.3, 1.0, 10.0]) | st.floats(0.01, 60),
)
# Pauses whose sum depends on the order in which they are added.
LATE_SUM = [
    (1.1600503894464573, None),
    (1.17223896271252, None),
    (1.9248407111645869, None),
    (0.011268458700928855, None),
    (0.0019961545026012666, Advice(interval_s=1.0, lifetime_s=60.0)),
]
STEPS = st.lists(st.tuples(st.floats(0, 3), st.none() | ADVICE), max_size=60)


def eager(pacing: Pacing, steps: list[tuple[float, Advice | None]]) -> list[float]:
    """When a device sends that always has something to send; between the steps it wakes when it is told to."""
    now_s, sent = 100.0, []
    for pause_s, advice in steps:
        end_s = now_s + pause_s
        while (due_s := pacing.due_s(now_s)) <= end_s:
            if due_s <= now_s:
                sent.append(now_s)
                pacing.sent(now_s)
            else:
                now_s = due_s
        now_s = end_s
        if advice is not None:
            pacing.advise(advice, now_s)
    return sent


@given(STEPS, st.integers(0, 100))
def test_no_device_sends_more_often_than_its_default(steps: list[tuple[float, Advice | None]], seed: int) -> None:
    sent = eager(Pacing(DEFAULT_S, random.Random(seed)), steps)
    for number, at_s in enumerate(sent[1:], 1):
        assert at_s - sent[number - 1] >= (1 - CATCH_UP) * DEFAULT_S - ROUNDING
        assert at_s - sent[0] >= (number - CATCH_UP) * DEFAULT_S - ROUNDING


@given(STEPS, st.floats(0.5, 20), st.integers(0, 100))
def test_advice_in_force_is_followed(steps: list[tuple[float, Advice | None]], interval_s: float, seed: int) -> None:
    pacing = Pacing(DEFAULT_S, random.Random(seed))
    eager(pacing, steps)
    advised_s = 100.0 + sum(pause_s for pause_s, _ in steps)
    pacing.advise(Advice(interval_s=interval_s, lifetime_s=3600), advised_s)
    now_s, sent = advised_s, []
    for _ in range(5):
        now_s = max(now_s, pacing.due_s(now_s))
        sent.append(now_s)
        pacing.sent(now_s)
    assert sent[0] <= advised_s + interval_s + ROUNDING
    for number, at_s in enumerate(sent[1:], 1):
        assert at_s - sent[0] >= (number - CATCH_UP) * interval_s - ROUNDING


@example(LATE_SUM, 0)
@given(STEPS, st.integers(0, 100))
def test_without_news_every_device_returns_to_its_default(steps: list[tuple[float, Advice | None]], seed: int) -> None:
    pacing = Pacing(DEFAULT_S, random.Random(seed))
    eager(pacing, steps)
    # A little more than the longest lifetime: the same pauses, added up in another order, differ in the last digits.
    now_s = 100.0 + sum(pause_s for pause_s, _ in steps) + 60.001
    assert pacing.interval_s(now_s) == DEFAULT_S
    assert pacing.due_s(now_s) <= now_s + DEFAULT_S


@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_times(seed: int) -> None:
    steps: list[tuple[float, Advice | None]] = [(1, Advice(interval_s=3, lifetime_s=2)), (10, None)]
    first, second = (eager(Pacing(DEFAULT_S, random.Random(seed)), steps) for _ in range(2))
    assert first == second
    assert math.isfinite(sum(first))
