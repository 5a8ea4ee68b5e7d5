"""SimulatedSensors of the simulator: exact without noise, and wrong in the ways they say with it."""

import random
import statistics

from tidegate.model.observations import Observation
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.monitoring import SimulatedSensors
from tidegate.sim.scenario import Service
from tidegate.sim.service import ServiceModel
from tidegate.sim.tally import LoadTally
from tidegate.sim.timeline import Timeline


def observations(noise: float, seconds: int = 400, rate_per_s: float = 8.0) -> tuple[list[Observation], ServiceModel]:
    """Ten messages a second, and two nodes that take four each."""
    timeline, tally = Timeline(), LoadTally()
    service = ServiceModel(
        timeline,
        Service(rate_per_s=rate_per_s / 2, nodes_at_start=2, nodes_max=2),
        nodes_at_start=2,
        chance=random.Random(1),
        on_start=lambda *_: None,
        on_done=lambda *_: None,
    )
    tally.connected()
    sensors, found = SimulatedSensors(noise, random.Random(2)), []
    for tick in range(1, 10 * seconds + 1):
        timeline.run(tick / 10)
        message = SimulatedMessage("telemetry", 1.0, timeline.now_s, 1, timeline.now_s)
        tally.arrived()
        service.arrive(message)
        if tick % 10 == 0:
            found.append(sensors.observe(timeline.now_s, {"telemetry": tally}, service))
    return found, service


def test_without_noise_everything_is_as_it_is() -> None:
    found, service = observations(noise=0.0, seconds=40)
    last = found[-1]
    assert (last.at_s, last.arrived, last.devices, last.committed) == (40.0, 400, 1, service.done)
    assert last.waiting == 400 - last.committed == service.waiting
    assert last.classes["telemetry"].publishes == 400
    assert [node.name for node in last.nodes] == ["node-1", "node-2"]
    assert sum(node.limit_rows for node in last.nodes) == last.committed
    assert sum(node.limit_s for node in last.nodes) == sum(node.busy_s for node in service.nodes)
    oldest_s = min(node.message.arrived_s for node in service.nodes if node.message)
    assert last.head_age_s == 40.0 - oldest_s


def test_work_at_the_limit_gives_the_true_rate_also_when_little_is_to_do() -> None:
    for rate_per_s in (8.0, 100.0):
        last = observations(noise=0.0, seconds=40, rate_per_s=rate_per_s)[0][-1]
        rows, seconds = (sum(getattr(node, name) for node in last.nodes) for name in ("limit_rows", "limit_s"))
        assert abs(rows / seconds - rate_per_s / 2) < 1e-6


def test_noisy_counters_never_fall_and_errors_do_not_add_up() -> None:
    noisy, exact = observations(noise=0.2)[0], observations(noise=0.0)[0]
    growth = 10
    for name in ("arrived", "committed"):
        reported = [getattr(one, name) for one in noisy]
        true = [getattr(one, name) for one in exact]
        errors = [seen - is_ for seen, is_ in zip(reported, true, strict=True)]
        assert reported == sorted(reported)
        assert max(abs(error) for error in errors) < 5 * 0.2 * growth
        assert 0.5 < statistics.pstdev(errors) < 2 * 0.2 * growth
        assert abs(statistics.fmean(errors[-100:])) < 1.5


def test_noisy_gauges_are_right_in_the_mean_and_devices_exact() -> None:
    noisy, exact = observations(noise=0.2)[0], observations(noise=0.0)[0]
    ratios = [seen.waiting / is_.waiting for seen, is_ in zip(noisy[50:], exact[50:], strict=True)]
    assert abs(statistics.fmean(ratios) - 1) < 0.05
    assert 0.15 < statistics.pstdev(ratios) < 0.25
    assert {one.devices for one in noisy} == {1}
    assert [one.head_age_s for one in noisy] != [one.head_age_s for one in exact]


def test_extreme_noise_gives_no_negative_gauge() -> None:
    noisy = observations(noise=5.0)[0]
    assert min(one.waiting for one in noisy) == 0
    assert min(one.head_age_s for one in noisy) == 0
