"""The model of who has heard what: shares by hand, and against devices that are simulated one by one."""

import random

import msgspec
import pytest

from tidegate.control.send_rate.listening import COHORTS_MAX, UNHELD_PER_S, Listeners
from tidegate.devices.pacing import Pacing
from tidegate.model.advice import Advice


def fleet(devices: int = 100, demand: float = 2.0) -> Listeners:
    return Listeners(demand_per_device=demand).counted(devices)


def test_new_devices_keep_to_their_demand() -> None:
    assert fleet().sends_per_s() == pytest.approx(200)
    assert fleet().wants_per_s() == pytest.approx(200)


def test_advice_takes_effect_as_devices_send() -> None:
    """Half a second is one interval: by then most have heard, a second later nearly all."""
    told = 0.5
    early, late = fleet().passed(0.1, told), fleet().passed(0.5, told).passed(1.0, told)
    assert 50 < late.sends_per_s() < 60 < 140 < early.sends_per_s() < 180
    assert late.wants_per_s() == pytest.approx(200)


def test_who_joins_has_heard_nothing() -> None:
    held = fleet().passed(10, 0.5)
    assert held.counted(200).sends_per_s() == pytest.approx(100 * 0.5 + 100 * 2)
    assert held.counted(50).sends_per_s() == pytest.approx(50 * 0.5)
    assert held.counted(0).sends_per_s() == 0


def test_an_outlook_is_linear_in_what_is_told() -> None:
    """Told nothing new it is what they send anyway; over a long time only the new rate counts."""
    held = fleet().passed(10, 1.0)
    fixed, each = held.outlook(2.0)
    assert fixed + each * 1.0 == pytest.approx(2.0 * held.sends_per_s())
    fixed, each = held.outlook(1000.0)
    assert fixed + each * 0.1 == pytest.approx(1000 * 10, rel=0.01)


def test_slow_devices_are_promised_late() -> None:
    """Of devices that send every 20 s, hardly any hears within a second."""
    slow = fleet().passed(1, 0.05).passed(100, 0.05)
    _, each = slow.outlook(1.0)
    assert each < 0.06 * 100 * 1.0


def test_cohorts_stay_few() -> None:
    one = fleet()
    for step in range(200):
        one = one.passed(0.1, 0.05 * 1.05 ** (step % 90))
        assert len(one.cohorts) <= COHORTS_MAX
        assert sum(cohort.share for cohort in one.cohorts) == pytest.approx(1)


@pytest.mark.parametrize(("before_s", "after_s"), [(0.5, 2.0), (0.5, 1.0), (2.0, 0.5), (3.0, 1.0)])
def test_the_model_agrees_with_devices(before_s: float, after_s: float) -> None:
    """Messages of 400 devices over the four seconds after a change, from the model and from the real pacing.

    A device that slows down draws its place between the two intervals: its first message comes earlier than modelled.
    """
    chance = random.Random(3)
    modelled = fleet(400).passed(30, 1 / before_s)
    fixed, each = modelled.outlook(4.0)
    expected = fixed + each * (1 / after_s)
    counted = 0
    for _ in range(400):
        pacing = Pacing(0.5, chance)
        pacing.advise(Advice(interval_s=before_s, lifetime_s=100), 0.0)
        at_s = chance.uniform(0, before_s)
        while at_s < 34:
            counted += at_s >= 30
            pacing.sent(at_s)
            if at_s >= 30:
                pacing.advise(Advice(interval_s=after_s, lifetime_s=100), at_s)
            at_s = max(pacing.due_s(at_s), at_s + 1e-6)
    assert counted == pytest.approx(expected, rel=0.25)


def test_unheld_is_a_rate_that_no_device_reaches() -> None:
    assert fleet().passed(5, UNHELD_PER_S).sends_per_s() == pytest.approx(200)


def test_who_does_not_listen_is_not_counted_twice() -> None:
    """Half of the devices is deaf: told a quarter of their rate, the others send 25, the deaf ones still 100."""
    held = msgspec.structs.replace(fleet().passed(60, 0.5), surplus_per_s=75.0)
    assert held.sends_per_s() == pytest.approx(125)
    assert held.wants_per_s() == pytest.approx(200)
    assert msgspec.structs.replace(held, surplus_per_s=250.0).wants_per_s() == pytest.approx(300)
