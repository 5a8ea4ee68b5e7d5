"""The yardstick: rates from the truth, against values computed by hand."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.oracle import Oracle, OracleSettings, Truth
from tidegate.model.errors import UserError

# Sensors that say nonsense: the oracle does not look at them.
BLIND = Seen(
    at_s=1.0,
    measured_at_s=0.0,
    overload=False,
    waiting=0,
    head_age_s=0.0,
    arrival_per_s=0.0,
    departure_per_s=0.0,
    devices=0,
)


def told(capacity: float, *, devices: int = 100, waiting: int = 4, nodes_working: int = 4) -> Truth:
    return Truth(capacity_per_s=capacity, devices=devices, waiting=waiting, nodes_working=nodes_working)


@pytest.mark.parametrize(
    ("horizon_s", "truth", "rate"),
    [
        pytest.param(1.0, told(50.0), 0.5, id="an empty queue gets the capacity"),
        pytest.param(1.0, told(50.0, waiting=2), 0.5, id="fewer messages than nodes are no queue"),
        pytest.param(1.0, told(200.0), None, id="enough for everybody holds nobody"),
        # Q = 30, H = max(10, 2 * 130 / 50): (50 - 30 / 10) / 100
        pytest.param(10.0, told(50.0, waiting=34), 0.47, id="a queue is worked off within the horizon"),
        # H = max(1, 2 * 130 / 50) = 5.2: (50 - 30 / 5.2) / 100
        pytest.param(1.0, told(50.0, waiting=34), 0.442308, id="but not faster than devices can show it"),
        pytest.param(1.0, told(50.0, waiting=10**9), 0.25, id="half of the capacity stays, however long the queue"),
        pytest.param(1.0, told(1.0), 0.02, id="a rate is never below its floor"),
        pytest.param(1.0, told(0.0, waiting=50), 0.02, id="without capacity the floor decides"),
        pytest.param(1.0, told(50.0, devices=0), None, id="without devices nobody is held"),
    ],
)
def test_rates(horizon_s: float, truth: Truth, rate: float | None) -> None:
    policy = Oracle(OracleSettings(default_rate_per_s=2.0, horizon_s=horizon_s, min_share=0.01))
    policy.truth = lambda: truth
    _, verdict = policy.step(policy.initial(), BLIND)
    assert verdict.rate_per_device == (None if rate is None else pytest.approx(rate))
    assert verdict.phase == ("idle" if rate is None else "protect")
    assert verdict.capacity_per_s == truth.capacity_per_s
    assert verdict.classes == {}


def test_a_share_of_the_capacity_can_be_left_unused() -> None:
    policy = Oracle(OracleSettings(default_rate_per_s=2.0, utilisation=0.9))
    policy.truth = lambda: told(50.0)
    assert policy.step(policy.initial(), BLIND)[1].rate_per_device == pytest.approx(0.45)


def test_without_a_simulation_it_says_so() -> None:
    policy = Oracle(OracleSettings())
    with pytest.raises(UserError, match="only a simulation can tell it"):
        policy.step(policy.initial(), BLIND)
