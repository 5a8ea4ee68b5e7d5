"""The concurrency limit as a send rate, step by step, against values computed by hand from its formula."""

import msgspec
import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.gradient2 import Gradient2, Gradient2Settings, Gradient2State

SETTINGS = Gradient2Settings(
    default_rate_per_s=2.0,
    tolerance=1.0,
    smoothing=0.5,
    long_window=9,  # a new value weighs 2 / (9 + 1)
    limit_per_device=0.05,
    queue_per_device=0.1,
    rtt_s_min=0.1,
    min_share=0.01,
    iteration_s=1.0,
)
POLICY = Gradient2(SETTINGS)


def seen(at_s: float, *, age_s: float, waiting: int, devices: int = 100, each: float | None = None) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=False,
        waiting=waiting,
        head_age_s=age_s,
        arrival_per_s=0.0,
        departure_per_s=0.0,
        devices=devices,
        node_rate_per_s=each,
    )


STEADY = Gradient2State(limit=40.0, rtt_s=1.0, rtt_long_s=1.0, steps=10, stepped_at_s=10.0)


@pytest.mark.parametrize(
    ("before", "now", "limit", "long_s", "rate"),
    [
        # 100 devices * 2 msg/s * 0.5 s
        pytest.param(
            Gradient2State(), seen(10, age_s=0.5, waiting=1), 100.0, 0.5, None, id="the first limit holds nobody"
        ),
        # g = 1: 0.5 * 40 + 0.5 * (40 + 10)
        pytest.param(STEADY, seen(11, age_s=1.0, waiting=40), 45.0, 1.0, 0.45, id="steady: the limit grows"),
        # long = 0.8 * 1 + 0.2 * 1.5 = 1.1, g = 1.1 / 1.5: 20 + 0.5 * (40 * 0.7333 + 10) = 39.667, over 1.5 s
        pytest.param(STEADY, seen(11, age_s=1.5, waiting=40), 39.6667, 1.1, 0.264444, id="load: the limit shrinks"),
        # long = 0.8 + 0.2 * 20 = 4.8, g = 0.24 -> 0.5: 20 + 0.5 * (20 + 10)
        pytest.param(STEADY, seen(11, age_s=20.0, waiting=40), 35.0, 4.8, 0.02, id="one outlier takes at most half"),
        # long = 0.8 + 0.2 * 0.5 = 0.9
        pytest.param(
            STEADY, seen(11, age_s=0.5, waiting=40), 45.0, 0.9, 0.9, id="a quick message proves no capacity: g is 1"
        ),
        # long = 0.8 + 0.2 * 0.25 = 0.85 > 2 * 0.25
        pytest.param(
            STEADY, seen(11, age_s=0.25, waiting=40), 45.0, 0.85 * 0.95, 1.8, id="back from load the mean drifts down"
        ),
        pytest.param(STEADY, seen(11, age_s=1.0, waiting=19), 40.0, 1.0, 0.4, id="an unused limit does not grow"),
        pytest.param(STEADY, seen(11, age_s=1.0, waiting=20), 45.0, 1.0, 0.45, id="half used is used"),
        pytest.param(STEADY, seen(10.9, age_s=9.0, waiting=40), 40.0, 1.0, 0.4, id="no step before its time"),
        # no age, a service time of 0.25 s
        pytest.param(
            STEADY, seen(11, age_s=0.0, waiting=0, each=4.0), 40.0, 0.85 * 0.95, 1.6, id="an empty queue: service time"
        ),
        # 0.8 + 0.2 * 0.1 = 0.82
        pytest.param(
            STEADY, seen(11, age_s=0.0, waiting=0), 40.0, 0.82 * 0.95, None, id="no service time known: the least RTT"
        ),
        pytest.param(
            STEADY, seen(11, age_s=1.0, waiting=1, devices=1_000), 50.0, 1.0, 0.05, id="the least limit scales"
        ),
        pytest.param(STEADY, seen(11, age_s=1.0, waiting=1, devices=0), 40.0, 1.0, None, id="no devices, nobody held"),
    ],
)
def test_one_step(before: Gradient2State, now: Seen, limit: float, long_s: float, rate: float | None) -> None:
    state, verdict = POLICY.step(before, now)
    assert state.limit == pytest.approx(limit, rel=1e-5)
    assert state.rtt_long_s == pytest.approx(long_s)
    assert verdict.rate_per_device == (None if rate is None else pytest.approx(rate, rel=1e-5))


def test_the_first_ten_round_trips_are_averaged_plainly() -> None:
    state = POLICY.initial()
    for at_s in range(10):
        state, _ = POLICY.step(state, seen(float(at_s), age_s=1.0 + at_s % 2, waiting=0))
    assert state.rtt_long_s == pytest.approx(1.5)
    state, _ = POLICY.step(state, seen(10.0, age_s=2.0, waiting=0))
    assert state.rtt_long_s == pytest.approx(0.8 * 1.5 + 0.2 * 2.0)


def test_tolerance_lets_round_trips_grow() -> None:
    policy = Gradient2(msgspec.structs.replace(SETTINGS, tolerance=1.5))
    state, _ = policy.step(STEADY, seen(11, age_s=1.5, waiting=40))  # 1.5 * 1.1 / 1.5 > 1
    assert state.limit == pytest.approx(45.0)
