"""When a device may send, step by step: (now, what happens, when the next message is due, interval in force)."""

import random

import pytest

from tidegate.devices.pacing import Pacing
from tidegate.model.advice import Advice


class Chance(random.Random):
    """Always the same place in the interval."""

    def __init__(self, share: float) -> None:
        super().__init__(0)
        self._share = share

    def random(self) -> float:
        return self._share


def advice(interval_s: float, lifetime_s: float = 100.0) -> Advice:
    return Advice(interval_s=interval_s, lifetime_s=lifetime_s)


SENT = "sent"


@pytest.mark.parametrize(
    ("steps", "due_s", "interval_s"),
    [
        pytest.param([], -float("inf"), 1.0, id="the first message goes at once"),
        pytest.param([(10.0, SENT)], 10.9, 1.0, id="the second after nearly an interval, a sample may be early"),
        pytest.param([(10.0, SENT), (10.9, SENT)], 11.9, 1.0, id="then regularly"),
        pytest.param([(10.0, SENT), (11.2, SENT)], 12.1, 1.0, id="a late one takes a tenth back from the next"),
        pytest.param([(10.0, SENT), (50.0, SENT)], 50.9, 1.0, id="after a long silence there is no burst"),
        pytest.param([(10.0, advice(4))], 12.0, 4.0, id="advice puts the next message into the new interval"),
        pytest.param([(10.0, advice(4)), (12.0, SENT)], 16.0, 4.0, id="and the following ones keep that phase"),
        pytest.param(
            [(10.0, SENT), (10.1, advice(4)), (11.0, advice(4))], 12.5, 4.0, id="repeated advice moves nothing"
        ),
        pytest.param([(10.0, SENT), (10.1, advice(1.2))], 11.1, 1.2, id="nobody sends sooner because of advice"),
        pytest.param([(10.0, advice(0.2))], -float("inf"), 1.0, id="shorter than the default is the default"),
        pytest.param([(10.0, advice(4)), (10.5, advice(0))], 11.0, 1.0, id="advice of 0 returns to the default"),
        pytest.param([(10.0, advice(9, 2))], 12.0, 9.0, id="due when it lapses: something may change then"),
        pytest.param([(10.0, advice(9, 2)), (12.0, None)], 12.5, 1.0, id="lapsed: the default, from a new phase"),
        pytest.param([(10.0, advice(9, 2)), (60.0, None)], 12.5, 1.0, id="noticed late: it lapsed when it lapsed"),
        pytest.param([(10.0, advice(9, 2)), (11.0, advice(9, 2))], 13.0, 9.0, id="renewed advice lives on"),
    ],
)
def test_pacing(steps: list[tuple[float, object]], due_s: float, interval_s: float) -> None:
    pacing, now_s = Pacing(1.0, Chance(0.5)), 0.0
    for now_s, step in steps:
        if isinstance(step, Advice):
            pacing.advise(step, now_s)
        elif step == SENT:
            assert pacing.due_s(now_s) <= now_s
            pacing.sent(now_s)
    assert pacing.due_s(now_s) == pytest.approx(due_s)
    assert pacing.interval_s(now_s) == interval_s


def test_a_fleet_that_hears_the_same_advice_spreads_over_the_interval() -> None:
    fleet = [Pacing(0.5, random.Random(seed)) for seed in range(1_000)]
    for pacing in fleet:
        pacing.advise(advice(10), 100.0)
    tenths = [int(pacing.due_s(100.0) - 100) for pacing in fleet]
    assert all(60 <= tenths.count(tenth) <= 150 for tenth in range(10))


def test_a_fleet_that_slows_down_is_spread_over_the_new_interval() -> None:
    """Each hears with its own message, all within half a second; none of them may meet at the old interval's end."""
    fleet = [Pacing(0.5, random.Random(seed)) for seed in range(1_000)]
    due = []
    for number, pacing in enumerate(fleet):
        sent_s = 100 + 0.5 * number / len(fleet)
        pacing.sent(sent_s)
        pacing.advise(advice(5), sent_s)
        due.append(pacing.due_s(sent_s))
    counts = [sum(100.5 + half / 2 <= one < 101 + half / 2 for one in due) for half in range(1, 9)]
    assert all(70 <= count <= 150 for count in counts), counts


@pytest.mark.parametrize("default_s", [0, -1.0, float("nan"), float("inf")])
def test_a_default_has_to_be_a_time(default_s: float) -> None:
    with pytest.raises(ValueError, match="default interval"):
        Pacing(default_s, random.Random(0))
