"""The benchmark's flood is the same at every size, and its check can fail."""

from itertools import pairwise

import pytest

from tidegate.loop.families import paces
from tidegate.loop.state import LoopState
from tidegate.model.intents import EVERYBODY
from tidegate.model.observations import Observation
from tidegate_bench import send_rate_scale
from tidegate_bench.send_rate_scale import CAPACITY_SHARE, DEVICES, RATE_PER_S, SHARES, Flood, checks

ROUNDS = 60


def observed(flood: Flood) -> list[Observation]:
    """What the loop saw, a round at a time."""
    found = []
    for _ in range(ROUNDS):
        assert flood.round() > 0
        found.append(flood.observe(0.0))
    return found


@pytest.mark.parametrize("devices", [min(DEVICES), max(DEVICES)])
def test_the_flood_is_one_and_its_devices_follow(devices: int) -> None:
    looks = observed(Flood(devices))
    demand_per_s, capacity_per_s = devices * RATE_PER_S, CAPACITY_SHARE * devices * RATE_PER_S
    assert looks[0].arrived == pytest.approx(0.5 * demand_per_s, rel=0.01)
    arrivals = [(after.arrived - before.arrived) / 0.5 for before, after in pairwise(looks)]
    assert max(arrivals) == pytest.approx(demand_per_s, rel=0.01)
    assert min(arrivals) < 0.99 * demand_per_s
    assert looks[-1].waiting < max(look.waiting for look in looks)
    assert looks[-1].head_age_s == pytest.approx(looks[-1].waiting / capacity_per_s, abs=2 / capacity_per_s)


@pytest.mark.parametrize("devices", [min(DEVICES), max(DEVICES)])
def test_the_classes_have_their_shares_and_nodes_are_at_their_limit(devices: int) -> None:
    flood = Flood(devices)
    for _ in range(4):
        look = flood.observe(0.5)
    assert {name: one.devices for name, one in look.classes.items()} == {
        name: devices * share for name, share in SHARES.items()
    }
    assert sum(one.publishes for one in look.classes.values()) == pytest.approx(look.arrived, abs=3)
    node = look.nodes[0]
    assert node.limit_s == pytest.approx(2.0)
    assert len(look.nodes) * node.limit_rows / node.limit_s == pytest.approx(CAPACITY_SHARE * devices * RATE_PER_S)


def decided(devices: int) -> tuple[list[int], dict[str, float], LoopState]:
    """How many decisions there were after each round, the last intervals by class, and what the loop remembers."""
    flood, counts = Flood(devices), []
    for _ in range(ROUNDS):
        flood.round()
        counts.append(flood.decisions)
    given = paces(flood.loop.state.planner.in_force["send-rate"].values)
    classes = {name: pace.interval_s or 0.0 for name, pace in given.items() if name != EVERYBODY}
    return counts, classes, flood.loop.state


def test_the_same_is_decided_at_every_size() -> None:
    (small, small_s, _), (large, large_s, _) = decided(10**4), decided(10**6)
    assert small == large
    assert small[-1] > small[0] == 1, "the routes, to begin with"
    assert small_s == pytest.approx(large_s, rel=0.02)


def test_every_decision_is_advice_and_the_important_wait_the_least() -> None:
    _, intervals_s, state = decided(10**5)
    assert {name for name, standing in state.planner.in_force.items() if standing.values} == {"route", "send-rate"}
    assert set(intervals_s) == set(SHARES)
    assert intervals_s["alarm"] <= intervals_s["command"] <= intervals_s["telemetry"]
    assert intervals_s["telemetry"] > 1 / RATE_PER_S


def row(devices: int, repetition: int, tick_us: float) -> dict[str, float]:
    return {"devices": devices, "repetition": repetition, "tick_us_median": tick_us}


@pytest.mark.parametrize(
    ("growths", "value", "holds"),
    [
        pytest.param([1.0, 1.1, 1.2], 1.1, True, id="hardly any growth"),
        pytest.param([2.0, 2.0, 2.0], 2.0, True, id="just so"),
        pytest.param([2.1, 2.1, 2.1], 2.1, False, id="too much"),
        pytest.param([1.0, 1.0, 9.0], 1.0, True, id="one slow moment is no growth"),
        pytest.param([1.0, 9.0, 9.0], 9.0, False, id="two of three are"),
    ],
)
def test_the_check_is_the_median_of_the_ratios(growths: list[float], value: float, holds: bool) -> None:
    """Each repetition is as slow as it is: only the ratio within it counts."""
    rows = []
    for repetition, growth in enumerate(growths):
        rows += [row(devices, repetition, 100.0 * (repetition + 1)) for devices in DEVICES[:-1]]
        rows.append(row(DEVICES[-1], repetition, 100.0 * (repetition + 1) * growth))
    found, share = checks(rows)
    assert (share.name, share.holds) == ("tick_share", True)
    assert (found.name, found.value, found.holds) == ("tick_growth", value, holds)


def test_sizes_span_three_orders_of_magnitude() -> None:
    assert max(DEVICES) / min(DEVICES) >= 1_000
    assert sum(send_rate_scale.SHARES.values()) == pytest.approx(1.0)
