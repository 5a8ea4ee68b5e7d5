"""Both autoscalers, step by step, against numbers worked out by hand."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.scaling.autoscaler import (
    OneStep,
    OneStepSettings,
    OneStepState,
    Threshold,
    ThresholdSettings,
    ThresholdState,
)
from tidegate.model.errors import UserError


def seen(
    at_s: float = 100.0,
    *,
    length: int = 5,
    nodes_working: int = 2,
    starting: int = 0,
    arrival: float = 10.0,
    rate: float | None = 5.0,
    delay_s: float = 0.0,
) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s - delay_s,
        overload=False,
        waiting=length + nodes_working,
        head_age_s=1.0,
        arrival_per_s=arrival,
        departure_per_s=arrival,
        devices=10,
        nodes_working=nodes_working,
        nodes_starting=starting,
        node_rate_per_s=rate,
    )


THRESHOLD = Threshold(ThresholdSettings(upper=10, lower=0, period_s=5.0, nodes_min=1, nodes_max=4))
TWO = ThresholdState(wanted=2, decided_at_s=90.0)
JUST = ThresholdState(wanted=2, decided_at_s=97.0)


@pytest.mark.parametrize(
    ("before", "now", "wanted", "saturated"),
    [
        pytest.param(ThresholdState(), seen(nodes_working=3), 3, False, id="it begins with what runs"),
        pytest.param(ThresholdState(), seen(nodes_working=2, starting=1), 3, False, id="and with what starts"),
        pytest.param(ThresholdState(), seen(nodes_working=0), 1, False, id="it begins within its bounds"),
        pytest.param(TWO, seen(length=10), 2, False, id="the upper threshold itself is not above it"),
        pytest.param(TWO, seen(length=11), 3, False, id="above the upper threshold one more"),
        pytest.param(TWO, seen(length=500), 3, False, id="one more, however long the queue is"),
        pytest.param(TWO, seen(length=1), 2, False, id="between the thresholds all stay"),
        pytest.param(TWO, seen(length=0), 1, False, id="at the lower threshold one less"),
        pytest.param(ThresholdState(wanted=1), seen(length=0, nodes_working=1), 1, False, id="never below the minimum"),
        pytest.param(
            ThresholdState(wanted=4), seen(length=11, nodes_working=4), 4, True, id="saturated at the maximum"
        ),
        pytest.param(
            ThresholdState(wanted=4), seen(length=10, nodes_working=4), 4, False, id="the maximum may be enough"
        ),
        pytest.param(
            ThresholdState(wanted=3), seen(length=11, nodes_working=3), 4, True, id="saturated by this decision"
        ),
        pytest.param(
            ThresholdState(wanted=4),
            seen(length=11, nodes_working=3, starting=1),
            4,
            True,
            id="saturated while one starts",
        ),
        pytest.param(TWO, seen(length=50, nodes_working=1, starting=1), 2, False, id="none while one starts"),
        pytest.param(TWO, seen(length=0, nodes_working=1, starting=1), 2, False, id="none stops while one starts"),
        pytest.param(JUST, seen(length=50), 2, False, id="one decision per period"),
        pytest.param(
            ThresholdState(wanted=2, decided_at_s=93.0),
            seen(length=50, delay_s=8.0),
            2,
            False,
            id="an old view decides nothing",
        ),
    ],
)
def test_threshold(before: ThresholdState, now: Seen, wanted: int, saturated: bool) -> None:
    state, verdict = THRESHOLD.step(before, now)
    assert (verdict.nodes_wanted, verdict.saturated) == (wanted, saturated)
    assert state.wanted == wanted
    changed = before.wanted is not None and wanted != before.wanted
    assert state.decided_at_s == (now.at_s if changed else before.decided_at_s)


def test_threshold_climbs_one_per_period() -> None:
    state, wanted = THRESHOLD.initial(), []
    running = 1
    for at_s in range(0, 20, 2):
        state, verdict = THRESHOLD.step(state, seen(float(at_s), length=100, nodes_working=running))
        running = verdict.nodes_wanted
        wanted.append(verdict.nodes_wanted)
    assert wanted == [2, 2, 2, 3, 3, 3, 4, 4, 4, 4]


ONE_STEP = OneStep(OneStepSettings(target_utilisation=0.8, down_after_s=10.0, nodes_min=1, nodes_max=6))


@pytest.mark.parametrize(
    ("now", "demand", "wanted", "saturated"),
    [
        # 10 / (5 * 0.8) = 2.5
        pytest.param(seen(arrival=10.0), None, 3, False, id="the arrival rate is the demand"),
        pytest.param(seen(arrival=8.0), None, 2, False, id="a whole number is not rounded up"),
        # 22 / 4 = 5.5
        pytest.param(seen(arrival=8.0), 22.0, 6, False, id="several at once, from the demand that is told"),
        pytest.param(seen(arrival=8.0), 24.0, 6, False, id="the maximum is just enough"),
        pytest.param(seen(arrival=8.0), 24.1, 6, True, id="saturated where more would be needed"),
        pytest.param(seen(arrival=99.0, rate=None), None, 2, False, id="an unknown rate changes nothing"),
        pytest.param(seen(arrival=0.0, nodes_working=0), None, 1, False, id="never below the minimum"),
    ],
)
def test_one_step_up(now: Seen, demand: float | None, wanted: int, saturated: bool) -> None:
    state, verdict = ONE_STEP.step(ONE_STEP.initial(), now, demand)
    assert (verdict.nodes_wanted, verdict.saturated, state.wanted) == (wanted, saturated, wanted)


def test_one_step_goes_down_late_and_only_to_the_highest_need_meanwhile() -> None:
    state, wanted = OneStepState(wanted=5), []
    demands = {0: 4.0, 4: 12.0, 6: 4.0, 10: 4.0, 12: 4.0, 22: 4.0}  # needs 1, 3, 1, 1, 1, 1
    for at_s, demand in demands.items():
        state, verdict = ONE_STEP.step(state, seen(float(at_s), nodes_working=5), demand)
        wanted.append(verdict.nodes_wanted)
    assert wanted == [5, 5, 5, 3, 3, 1]


def test_one_step_begins_to_wait_anew_when_the_need_was_back() -> None:
    state, wanted = OneStepState(wanted=3), []
    for at_s, demand in {0: 4.0, 8: 12.0, 12: 4.0, 21: 4.0, 22: 4.0}.items():
        state, verdict = ONE_STEP.step(state, seen(float(at_s), nodes_working=3), demand)
        wanted.append(verdict.nodes_wanted)
    assert wanted == [3, 3, 3, 3, 1]


def test_one_step_remembers_the_rate_in_a_lull() -> None:
    state, _ = ONE_STEP.step(ONE_STEP.initial(), seen(0.0, arrival=16.0))
    for at_s in (1.0, 11.0):
        state, verdict = ONE_STEP.step(state, seen(at_s, arrival=0.0, rate=None))
    assert verdict.nodes_wanted == 1


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: ThresholdSettings(nodes_min=3, nodes_max=2), "nodes_min 3 above nodes_max 2"),
        (lambda: OneStepSettings(nodes_min=3, nodes_max=2), "nodes_min 3 above nodes_max 2"),
        (lambda: ThresholdSettings(lower=11, upper=10), "lower 11 above upper 10"),
    ],
)
def test_bounds_that_contradict_each_other_are_refused(build: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build()
