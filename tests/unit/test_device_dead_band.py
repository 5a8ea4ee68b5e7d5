"""When an event-driven device sends, step by step: which samples leave at once, and when the others go."""

import itertools
import random

import pytest

from tidegate.devices.dead_band import DeadBand
from tidegate.devices.simulated_values import STEP_MAX, random_walk
from tidegate.model.advice import Advice


def advice(factor: float, lifetime_s: float = 100.0) -> Advice:
    return Advice(interval_s=50, lifetime_s=lifetime_s, dead_bands={"siren": factor, "other": 99})


@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        pytest.param([(0, 5.0)], [5.0], id="the first sample goes at once"),
        pytest.param([(0, 5.0), (1, 5.9), (2, 4.1)], [5.0], id="what changes less than the width waits"),
        pytest.param([(0, 5.0), (1, 6.0), (2, 5.0)], [5.0, 6.0, 5.0], id="exactly the width is a change, either way"),
        pytest.param([(0, 5.0), (1, 5.5), (2, 6.1), (3, 5.5)], [5.0, 6.1], id="compared with the last one sent"),
        pytest.param([(0, 5.0), (0, advice(3)), (1, 7.9), (2, 8.0)], [5.0, 8.0], id="advice widens its class's band"),
        pytest.param([(0, 5.0), (0, advice(3)), (1, 7.9), (2, advice(2)), (3, 7.9)], [5.0, 7.9], id="and narrows it"),
        pytest.param([(0, 5.0), (0, advice(3, 2)), (1, 7.0), (2, 7.0)], [5.0, 7.0], id="until it lapses"),
        pytest.param([(0, 5.0), (4, 5.0), (10, 5.0), (14, 5.0)], [5.0, 5.0], id="a long silence ends at a sample"),
    ],
)
def test_what_is_sent(steps: list[tuple[float, object]], sent: list[float]) -> None:
    band, found = DeadBand(1.0, random.Random(0), silence_s_max=10.0, device_class="siren"), []
    for now_s, step in steps:
        if isinstance(step, Advice):
            band.advise(step, now_s)
            continue
        assert isinstance(step, float)
        changed = band.sampled(step, now_s)
        if changed or band.due_s(now_s) <= now_s:
            found.append(step)
            band.sent(now_s)
    assert found == sent


def test_a_change_that_could_not_be_sent_stays_due() -> None:
    band = DeadBand(1.0, random.Random(0))
    band.sampled(5.0, 0.0)
    band.sent(0.0)
    assert band.sampled(7.0, 1.0)
    assert band.sampled(5.0, 2.0), "it came back, and the change has still not been told"
    assert band.due_s(2.0) <= 2.0
    band.sent(3.0)
    assert not band.sampled(5.5, 4.0)


def test_devices_that_were_cut_off_together_do_not_speak_together() -> None:
    fleet = [DeadBand(1.0, random.Random(seed), silence_s_max=20.0) for seed in range(1_000)]
    for band in fleet:
        band.sampled(5.0, 100.0)
        band.sent(100.0)
    seconds = [int(band.due_s(100.0) - 110) for band in fleet]
    assert all(60 <= seconds.count(second) <= 150 for second in range(10))


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf")])
def test_a_width_and_a_silence_have_to_be_something(wrong: float) -> None:
    with pytest.raises(ValueError, match="dead band"):
        DeadBand(wrong, random.Random(0))
    with pytest.raises(ValueError, match="silence"):
        DeadBand(1.0, random.Random(0), silence_s_max=wrong)


def test_the_wider_the_band_the_fewer_messages_of_a_walk() -> None:
    walk = random_walk(random.Random(3))
    values = [next(walk) for _ in range(5_000)]
    sent = []
    for width in (0.05, 0.1, 0.2, 0.4):
        band = DeadBand(width, random.Random(0))
        count = 0
        for value in values:
            if band.sampled(value, 0.0):
                band.sent(0.0)
                count += 1
        sent.append(count)
    assert all(later < 0.6 * earlier for earlier, later in itertools.pairwise(sent)), sent


def test_a_walk_is_a_function_of_its_seed_and_stays_in_its_range_in_small_steps() -> None:
    walks = [[next(walk) for _ in range(20_000)] for walk in map(random_walk, map(random.Random, (1, 1, 2)))]
    assert walks[0] == walks[1] != walks[2]
    hundredths = [round(value * 100) for value in walks[0]]
    assert [number / 100 for number in hundredths] == walks[0]
    assert min(hundredths) >= 1_500
    assert max(hundredths) <= 3_000
    assert max(abs(later - earlier) for earlier, later in itertools.pairwise(hundredths)) == STEP_MAX
