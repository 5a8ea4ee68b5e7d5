"""Whole worlds in virtual time, small enough to be worked out by hand."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.none import NoState
from tidegate.model.errors import UserError
from tidegate.sim.files import load
from tidegate.sim.result import Result
from tidegate.sim.run import run_policy, simulate
from tidegate.sim.scenario import Load, Monitoring, Scenario, Service, Strategy

NONE = Strategy(policy="none")


class Fixed:
    """Says the same in every round, and keeps what it saw."""

    def __init__(self, interval_s: float | None = None, **said: Any) -> None:
        self.seen: list[Seen] = []
        self._verdict = Verdict(
            phase="fixed",
            rate_per_device=None if interval_s is None else 1 / interval_s,
            capacity_per_s=None,
            rule="always the same",
            rejected="anything else",
            **said,
        )

    @property
    def state_type(self) -> type[NoState]:
        return NoState

    def initial(self) -> NoState:
        return NoState()

    def step(self, state: NoState, seen: Seen) -> tuple[NoState, Verdict]:
        self.seen.append(seen)
        return state, self._verdict


def world(
    *, seconds: float = 60, service: Service | None = None, monitoring: Monitoring | None = None, **load: Any
) -> Scenario:
    chosen = {"name": "telemetry", "pattern": "0:1", "default_interval_s": 1.0} | load
    return Scenario(
        name="small",
        seconds=seconds,
        classes=(Load(**chosen),),
        service=service or Service(rate_per_s=100),
        monitoring=monitoring or Monitoring(),
    )


def run(scenario: Scenario, policy: Fixed, seed: int = 1) -> Result:
    # Nobody is held without an overload: here there is always one.
    return run_policy(scenario, Strategy(policy="fixed", overload="waiting >= 0", overload_for_s=0.0), policy, seed)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_device_and_a_slow_node_by_hand(seed: int) -> None:
    """A message a second, 1.25 s of service: the k-th message waits k / 4, whatever the device's phase."""
    result = simulate(world(seconds=20, service=Service(rate_per_s=0.8)), NONE, seed)
    assert (result.generated, result.sent, result.processed, result.waiting_end) == (20, 20, 15, 5)
    assert result.delay_mean_s == pytest.approx(sum(k / 4 for k in range(16)) / 16)
    assert result.delay_max_s == pytest.approx(15 / 4)
    assert result.age_mean_s == pytest.approx(sum(k / 4 + 1.25 for k in range(15)) / 15)
    assert result.queue_length_max == 4
    assert (result.interval_mean_s, result.interval_max_s) == (1.0, 1.0)


def test_the_first_message_is_served_at_once_and_the_cost_is_its_service_time() -> None:
    result = simulate(world(seconds=20, cost=3.0, service=Service(rate_per_s=6)), NONE, 1)
    assert result.delay_max_s == 0
    assert result.age_mean_s == pytest.approx(0.5)


def test_a_held_device_combines_its_samples_and_loses_none() -> None:
    result = run(world(seconds=400, default_interval_s=0.5), Fixed(interval_s=2.5))
    late = result.sent - result.series.arrivals[0] - sum(result.series.arrivals[1:20])
    assert late == pytest.approx(380 / 2.5, abs=1)
    assert result.generated == 800
    assert result.generated - result.readings <= 5  # what waits for the next message
    assert result.interval_max_s == 2.5
    # The middle of five samples that are half a second apart is a second before the last of them.
    assert result.age_mean_s == pytest.approx(1.25, abs=0.3)


def test_an_interval_between_two_samples_is_kept_in_the_mean() -> None:
    """0.75 s with a sample each 0.5 s: messages stand for one or two samples in turn."""
    result = run(world(seconds=303, default_interval_s=0.5), Fixed(interval_s=0.75))
    assert sum(result.series.arrivals[3:]) == pytest.approx(300 / 0.75, abs=3)
    assert result.generated - result.readings <= 2


def test_advice_is_heard_with_the_acknowledgement_of_a_message_and_not_before() -> None:
    """The first advice is given at 4 s: a device that sends after that falls silent, one that sent before sends on."""
    scenario = world(seconds=40, default_interval_s=20.0, pattern="0:10")
    free, held = run(scenario, Fixed()).series.arrivals, run(scenario, Fixed(interval_s=1000.0)).series.arrivals
    assert held[:20] == free[:20]
    assert 0 < sum(free[:4]) < 10
    assert sum(held[20:]) == sum(free[:4])


def test_advice_that_is_not_renewed_lapses() -> None:
    """Advice of 40 s lasts 10 s, and the next measurement that could renew it is taken at 60 s."""
    seldom = msgspec.structs.replace(world(seconds=60), window_s=20.0, advice_lifetime_s=10.0, advice_half_life_s=0.0)
    seldom = msgspec.structs.replace(seldom, monitoring=Monitoring(period_s=20))
    result = run(seldom, Fixed(interval_s=3.0))
    assert result.series.interval_s == [0.0] * 40 + [3.0] * 9 + [0.0] * 11
    assert sum(result.series.arrivals[:40]) == 40
    assert sum(result.series.arrivals[41:50]) == 3
    assert sum(result.series.arrivals[51:60]) == 9
    decaying = run(msgspec.structs.replace(seldom, advice_half_life_s=10.0), Fixed(interval_s=3.0))
    assert decaying.series.interval_s == [0.0] * 40 + [3.0] * 9 + [1.5] * 10 + [0.75]
    assert sum(decaying.series.arrivals[51:60]) == 6


def test_acknowledgements_take_their_time() -> None:
    """Advice that is 4.5 s on its way lets a device send four more messages, one a second."""
    slow = msgspec.structs.replace(world(seconds=30), acknowledgement_s=4.5)
    at_once, late = run(world(seconds=30), Fixed(interval_s=1000.0)), run(slow, Fixed(interval_s=1000.0))
    assert late.sent == at_once.sent + 4


def test_deaf_devices_keep_their_default() -> None:
    scenario = world(seconds=100, pattern="0:10", deaf_share=0.3)
    result = run(scenario, Fixed(interval_s=1000.0))
    assert 3 * 90 <= sum(result.series.arrivals[10:]) <= 3 * 90 + 7, "who listens sends once more at the most"
    assert result.interval_max_s == 1000.0


def test_event_driven_devices_widen_their_dead_band() -> None:
    """Twice the band of a random walk: a quarter of the messages."""
    scenario = world(seconds=800, pattern="0:20", event_driven=True, elasticity=2.0)
    free = run(scenario, Fixed())
    wide = run(scenario, Fixed(dead_bands={"telemetry": 2.0}))
    assert free.sent == pytest.approx(free.generated, rel=0.03)
    assert wide.sent == pytest.approx(wide.generated / 4, rel=0.1)
    assert wide.interval_max_s == 4.0


@pytest.mark.parametrize("elasticity", [1.0, 2.0])
def test_a_policy_that_knows_only_intervals_gives_event_driven_devices_a_dead_band(elasticity: float) -> None:
    scenario = world(seconds=800, pattern="0:20", event_driven=True, elasticity=elasticity)
    held = run(scenario, Fixed(interval_s=8.0))
    assert held.sent == pytest.approx(held.generated / 8, rel=0.25)


def test_classes_are_advised_apart() -> None:
    loads = tuple(Load(name=name, pattern="0:4", default_interval_s=1.0) for name in ("alarm", "telemetry"))
    scenario = msgspec.structs.replace(world(seconds=100), classes=loads)
    result = run(scenario, Fixed(interval_s=10.0, classes={"alarm": None}))
    assert result.classes["alarm"].sent == 400
    assert result.classes["telemetry"].sent < 80
    assert result.sent == result.classes["alarm"].sent + result.classes["telemetry"].sent


def test_the_last_device_that_came_leaves_first_and_sends_no_more() -> None:
    result = simulate(world(seconds=60, pattern="0:1,20:1,20:3,40:3,40:1"), NONE, 1)
    assert [sum(result.series.arrivals[begin : begin + 20]) for begin in (0, 20, 40)] == [20, 60, 20]
    assert result.series.devices[::20] == [1, 3, 1]


def test_a_node_is_there_after_its_start_and_the_maximum_holds() -> None:
    service = Service(rate_per_s=1, nodes_at_start=1, nodes_max=3, start_s=7.5)
    policy = Fixed(nodes_wanted=9)
    result = run(world(seconds=30, service=service), policy)
    # The first window is full at 4 s; so much later two more work.
    assert result.series.nodes_working == [1] * 11 + [3] * 19
    assert [seen.nodes_starting for seen in policy.seen[:9]] == [0, 2, 2, 2, 2, 2, 2, 2, 0]
    assert result.node_seconds == pytest.approx(30 + 2 * 26)


def test_a_node_that_is_not_wanted_ends_its_message_first() -> None:
    service = Service(rate_per_s=0.1, nodes_at_start=2, nodes_max=2)
    result = run(world(seconds=40, service=service), Fixed(nodes_wanted=1))
    assert result.series.nodes_working[-1] == 1
    assert result.processed == 4  # two at about 10 s, then one each ten seconds
    assert result.node_seconds < 2 * 40


def test_an_external_cap_makes_scaling_out_useless() -> None:
    def throughput(node_count: int, cap: float | None) -> float:
        service = Service(rate_per_s=10, nodes_at_start=node_count, nodes_max=8, external_cap_per_s=cap)
        result = simulate(world(seconds=40, pattern="0:100", service=service), NONE, 1)
        assert result.series.capacity_per_s[20] == pytest.approx(result.processed / 40, rel=0.02)
        return result.processed / 40

    assert throughput(8, None) == pytest.approx(2 * throughput(4, None), rel=0.01)
    assert throughput(8, 15.0) == pytest.approx(throughput(4, 15.0), rel=0.01)
    assert throughput(4, 15.0) == pytest.approx(15.0, rel=0.01)
    # One alone is blocked while its call lasts: 1 / (1/10 + 1/15).
    assert throughput(1, 15.0) == pytest.approx(6.0, rel=0.01)


def test_capacity_halves_for_a_minute() -> None:
    service = Service(rate_per_s=10, capacity=((60, 0.5), (120, 1)))
    result = simulate(world(seconds=180, pattern="0:20", service=service), NONE, 1)
    assert [sum(result.series.departures[begin : begin + 60]) for begin in (0, 60, 120)] == pytest.approx(
        [600, 300, 600], abs=3
    )
    assert (result.series.capacity_per_s[30], result.series.capacity_per_s[90]) == (10.0, 5.0)


def test_service_times_are_noisy_around_their_mean() -> None:
    noisy = world(seconds=200, pattern="0:20", service=Service(rate_per_s=10, noise=0.5))
    exact = world(seconds=200, pattern="0:20", service=Service(rate_per_s=10))
    assert simulate(noisy, NONE, 1).processed == pytest.approx(simulate(exact, NONE, 1).processed, rel=0.03)
    assert simulate(noisy, NONE, 1).delay_mean_s != simulate(exact, NONE, 1).delay_mean_s


def test_what_is_measured_arrives_late() -> None:
    policy = Fixed()
    run(world(seconds=20, monitoring=Monitoring(period_s=2, delay_s=1.5)), policy)
    assert {round(seen.at_s - seen.measured_at_s, 9) for seen in policy.seen} == {1.5}
    assert [seen.measured_at_s for seen in policy.seen] == [6, 8, 10, 12, 14, 16, 18]


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    scenario = world(
        seconds=60, pattern="0:5,30:40", service=Service(rate_per_s=10, noise=0.2), monitoring=Monitoring(noise=0.2)
    )
    strategy = Strategy(policy="gotin")
    first, again, other = (simulate(scenario, strategy, seed) for seed in (7, 7, 8))
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert first.series != other.series


def test_a_policy_does_not_shift_what_devices_draw() -> None:
    """Until the first advice every strategy sees the same arrivals."""
    scenario = world(seconds=60, pattern="0:30", service=Service(rate_per_s=10, noise=0.2))
    free, held = simulate(scenario, NONE, 3), simulate(scenario, Strategy(policy="gotin"), 3)
    assert free.series.arrivals[:4] == held.series.arrivals[:4]
    assert free.series.arrivals != held.series.arrivals


def test_progress_is_told_to_the_end() -> None:
    shares: list[float] = []
    simulate(world(seconds=2.5), NONE, 1, shares.append)
    assert shares == [0.4, 0.8, 1.0]


def test_a_strategy_may_not_begin_with_more_nodes_than_there_may_be() -> None:
    with pytest.raises(UserError, match="Strategy none starts with 5 nodes, and the scenario allows 1 to 1"):
        simulate(world(), Strategy(policy="none", nodes_at_start=5), 1)


def test_static_maximum_provisioning_is_a_strategy() -> None:
    service = Service(rate_per_s=10, nodes_at_start=1, nodes_max=4)
    result = simulate(world(service=service), Strategy(policy="none", nodes_at_start=4), 1)
    assert result.nodes_mean == 4


def test_rules_act_in_virtual_time_as_they_do_live() -> None:
    """More nodes while the queue is long, and what the policy said again after it."""
    found = load(Path("examples/scenarios/rules.yaml"))
    without, ruled = (simulate(found, strategy, 1) for strategy in found.strategies)
    assert ruled.row()["delay_mean_s"] < 0.02 * without.row()["delay_mean_s"]
    assert max(ruled.series.nodes_working) == 2
    assert (ruled.series.nodes_working[-1], ruled.series.interval_s[-1]) == (1, 0.0), "all of it was taken back"
    assert {2.0, 1.0} <= set(ruled.series.interval_s)
