"""Advice that nobody renews shrinks by and by: on the bus, in gateways, in devices and in what the loop knows."""

import random

import msgspec
import pytest

from tidegate.devices.dead_band import DeadBand
from tidegate.devices.pacing import Pacing
from tidegate.gateway.connection.advising import AdviceInForce, place_of
from tidegate.loop.knowledge import Standing
from tidegate.model.advice import HALVINGS, Advice
from tidegate.model.intents import Pace

SAID = Advice(interval_s=8.0, lifetime_s=10.0, half_life_s=5.0, classes={"alarm": 2.0}, dead_bands={"door": 9.0})


@pytest.mark.parametrize(
    ("passed_s", "interval_s", "lifetime_s"),
    [(0.0, 8.0, 10.0), (9.0, 8.0, 1.0), (10.0, 4.0, 5.0), (14.0, 4.0, 1.0), (15.0, 2.0, 5.0), (39.0, 0.125, 1.0)],
)
def test_an_interval_is_halved_every_half_life(passed_s: float, interval_s: float, lifetime_s: float) -> None:
    left = SAID.after(passed_s)
    assert left is not None
    assert (left.interval_s, left.lifetime_s) == (interval_s, lifetime_s)
    assert left.classes["alarm"] == interval_s / 4
    assert left.dead_bands["door"] == 1 + interval_s


def test_in_the_end_nothing_is_left() -> None:
    assert SAID.lasts_s == 10.0 + HALVINGS * 5.0
    assert SAID.after(SAID.lasts_s - 0.01) is not None
    assert SAID.after(SAID.lasts_s) is None
    assert Advice(interval_s=8.0, lifetime_s=10.0).after(10.0) is None, "without a half-life it is over at once"


def test_a_gateway_has_another_revision_for_every_step() -> None:
    times_s = [0.0]
    advice = AdviceInForce(lambda: times_s[-1])
    advice.renew(SAID, 7)
    seen = [advice.revision]
    for now_s in (9.0, 10.0, 12.0, 15.0, 39.9, 40.0):
        times_s.append(now_s)
        advice.current()
        seen.append(advice.revision)
    assert seen[0] == seen[1]
    assert len(set(seen)) == 5
    assert seen[2] == seen[3]
    assert seen[-1] == 0
    advice.renew(SAID, 8)
    assert advice.revision not in seen


def test_a_device_goes_back_to_its_default_step_by_step() -> None:
    pacing = Pacing(0.5, random.Random(1))
    pacing.advise(SAID, 0.0)
    assert [pacing.interval_s(at_s) for at_s in (9.9, 10.0, 15.0, 20.0, 25.0)] == [8.0, 4.0, 2.0, 1.0, 0.5]
    assert pacing.interval_s(1e6) == 0.5


def test_a_device_that_was_asleep_has_missed_nothing() -> None:
    pacing = Pacing(0.5, random.Random(1))
    pacing.advise(SAID, 0.0)
    assert pacing.interval_s(16.0) == 2.0


def test_a_dead_band_narrows_likewise() -> None:
    band = DeadBand(2.0, random.Random(1), device_class="door")
    band.advise(SAID, 0.0)
    assert [band.width(at_s) for at_s in (9.9, 10.0, 15.0)] == [18.0, 10.0, 6.0]
    assert band.width(1e6) == 2.0


def test_the_loop_knows_what_is_left_of_what_it_said() -> None:
    said = {"*": Pace(interval_s=8.0)}
    standing = Standing(values=said, acted=True, told_at_s=100.0, lifetime_s=10.0, half_life_s=5.0)
    assert standing.kept_to(109.9) == said
    assert standing.kept_to(110.0) == {"*": Pace(interval_s=4.0)}
    assert standing.kept_to(115.0) == {"*": Pace(interval_s=2.0)}
    assert standing.kept_to(140.0) == {}


def test_advice_for_a_share_is_for_the_same_devices_everywhere() -> None:
    advice = AdviceInForce(lambda: 0.0)
    advice.renew(Advice(interval_s=8.0, lifetime_s=10.0, share=0.25), 1)
    places = [place_of(f"device-{number}".encode()) for number in range(2_000)]
    held = [advice.rate_of(None, place) is not None for place in places]
    assert 0.2 < sum(held) / len(held) < 0.3
    outside = advice.current(0.9)
    assert outside is not None
    assert outside.interval_s == 0.0, "who is not meant is told so"


@pytest.mark.parametrize(
    ("age_s", "interval_s"),
    [(0.0, 8.0), (12.0, 4.0), (22.0, 1.0), (-3_600.0, 8.0), (3_600.0, 8.0)],
    ids=["just written", "lapsed", "long ago", "a clock that is behind", "a clock that is ahead"],
)
def test_a_gateway_that_begins_goes_on_where_the_advice_is(age_s: float, interval_s: float) -> None:
    """Else every restart would hold devices anew by what has long shrunk."""
    in_force = AdviceInForce(lambda: 50.0)
    in_force.renew(SAID, 7, age_s)
    left = in_force.current()
    assert left is not None
    assert left.interval_s == interval_s


def test_names_are_spread_evenly_over_a_cohort() -> None:
    for pattern in ("d{}", "device-{:06}", "{}"):
        share = sum(place_of(pattern.format(number).encode()) < 0.1 for number in range(1_000)) / 1_000
        assert 0.07 < share < 0.13


def test_what_is_left_is_always_advice() -> None:
    short = Advice(interval_s=8.0, lifetime_s=0.3, half_life_s=0.1)
    for step in range(1_000):
        left = short.after(step / 1_000)
        if left is not None:
            assert msgspec.json.decode(msgspec.json.encode(left), type=Advice) == left
