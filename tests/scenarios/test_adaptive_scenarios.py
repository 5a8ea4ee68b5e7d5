"""``adaptive`` in virtual time, where something goes wrong: short runs, and bounds with room for other seeds."""

import pytest

from tidegate.sim.result import Result
from tidegate.sim.run import simulate
from tidegate.sim.scenario import Load, Monitoring, Scenario, Service, Strategy

SEEDS = (1, 2)


def run(seconds: float, service: dict, seed: int = 1, options: dict | None = None, **load) -> Result:
    usual = {"rate_per_s": 10.0, "noise": 0.1, "nodes_at_start": 4, "nodes_max": 8}
    scenario = Scenario(
        name="test",
        seconds=seconds,
        classes=(Load(**{"name": "telemetry", "pattern": f"0:60,{seconds}:60", **load}),),
        service=Service(**{**usual, **service}),
        monitoring=Monitoring(period_s=1.0),
    )
    return simulate(scenario, Strategy(policy="adaptive", options=options or {}), seed)


def between(values: list, begin_s: int, end_s: int) -> float:
    chosen = values[begin_s:end_s]
    return sum(chosen) / len(chosen)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flood_is_held_to_the_capacity(seed: int) -> None:
    result = run(120, {}, seed)
    assert between(result.series.departures, 40, 120) > 0.97 * 40
    assert max(result.series.head_age_s[40:]) < 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_capacity_that_is_halved_and_comes_back_is_followed_both_ways(seed: int) -> None:
    result = run(240, {"capacity": ((0.0, 1.0), (80.0, 0.5), (140.0, 1.0))}, seed)
    assert max(result.series.head_age_s[100:140]) < 2.0
    assert between(result.series.departures, 100, 140) > 0.95 * 20
    assert between(result.series.departures, 180, 240) > 0.95 * 40


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stall_is_over_when_it_is_over(seed: int) -> None:
    """Nothing is processed for ten seconds; half a minute later everything is as before."""
    result = run(150, {"capacity": ((0.0, 1.0), (60.0, 0.0), (70.0, 1.0))}, seed)
    assert between(result.series.departures, 105, 150) > 0.93 * 40


@pytest.mark.parametrize("seed", SEEDS)
def test_devices_that_do_not_listen_are_paid_for_by_the_others(seed: int) -> None:
    result = run(150, {}, seed, deaf_share=0.25)
    assert max(result.series.head_age_s[80:]) < 3.0
    assert between(result.series.departures, 80, 150) > 0.93 * 40


@pytest.mark.parametrize("seed", SEEDS)
def test_event_driven_devices_are_brought_down_and_stay_there(seed: int) -> None:
    result = run(240, {}, seed, event_driven=True)
    assert between(result.series.departures, 120, 240) > 0.85 * 40
    assert max(result.series.head_age_s[120:]) < 6.0


def test_behind_a_shared_bottleneck_nodes_that_do_not_help_are_given_back() -> None:
    """A node takes 7 msg/s, because each message waits for the shared service too; 25 is all that passes there."""
    options = {"provisioning": {"nodes_max": 8, "start_s": 10.0}}
    result = run(200, {"nodes_at_start": 2, "start_s": 10.0, "external_cap_per_s": 25.0}, options=options)
    assert max(result.series.nodes_working) > 6, "it was tried"
    assert between(result.series.nodes_working, 80, 130) <= 5
    assert between(result.series.departures, 80, 130) > 0.93 * 25


def test_nodes_come_with_the_demand_and_go_with_it() -> None:
    options = {"provisioning": {"nodes_max": 8, "start_s": 5.0}}
    pattern = "0:10,40:10,60:35,120:35,130:10,200:10"
    result = run(200, {"nodes_at_start": 2, "start_s": 5.0}, options=options, pattern=pattern)
    assert between(result.series.nodes_working, 80, 120) >= 7
    assert result.series.nodes_working[-1] <= 4
    assert result.delay_mean_s < 0.5


def test_alarms_are_fresh_and_telemetry_waits_on_its_devices() -> None:
    scenario = Scenario(
        name="classes",
        seconds=120,
        classes=(
            Load(name="alarm", pattern="0:10,120:10", weight=16.0),
            Load(name="telemetry", pattern="0:60,120:60"),
        ),
        service=Service(rate_per_s=10.0, noise=0.1, nodes_at_start=5, nodes_max=5),
        monitoring=Monitoring(period_s=1.0),
    )
    result = simulate(scenario, Strategy(policy="adaptive"), 1)
    assert result.classes["alarm"].interval_mean_s < 0.55
    assert result.classes["telemetry"].interval_mean_s > 1.5 * 0.5
    assert max(result.series.head_age_s[40:]) < 1.5
