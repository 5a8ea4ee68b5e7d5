"""What holds in every world: nothing is lost, nothing is counted twice, and queueing obeys Little."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.devices.pattern import Pattern
from tidegate.sim.capacity import CapacityCurve
from tidegate.sim.fleet import changes
from tidegate.sim.run import simulate
from tidegate.sim.samples import GridSamples
from tidegate.sim.scenario import Load, Monitoring, Scenario, Service, Strategy

COUNTS = st.integers(0, 15)
PATTERNS = st.lists(st.tuples(st.integers(0, 40), COUNTS), min_size=1, max_size=5).map(
    lambda points: tuple(sorted(points))
)
LOADS = st.builds(
    Load,
    name=st.just("telemetry"),
    pattern=PATTERNS,
    default_interval_s=st.sampled_from([0.3, 0.5, 1.0, 3.0]),
    cost=st.sampled_from([0.5, 1.0, 3.0]),
    deaf_share=st.sampled_from([0.0, 0.3, 1.0]),
)
EVENTS = st.builds(Load, name=st.just("meter"), pattern=PATTERNS, event_driven=st.just(True))
SERVICES = st.builds(
    Service,
    rate_per_s=st.sampled_from([0.5, 5.0, 30.0]),
    noise=st.sampled_from([0.0, 0.5]),
    nodes_at_start=st.integers(1, 3),
    nodes_max=st.integers(3, 5),
    start_s=st.sampled_from([0.0, 4.0]),
    capacity=st.sampled_from([(), ((10, 0.0), (15, 1.0)), ((20, 0.3),)]),
    external_cap_per_s=st.sampled_from([None, 7.0]),
)
SCENARIOS = st.builds(
    Scenario,
    name=st.just("any"),
    seconds=st.sampled_from([30.0, 41.5]),
    classes=st.tuples(LOADS, EVENTS),
    service=SERVICES,
    monitoring=st.builds(
        Monitoring,
        period_s=st.sampled_from([0.5, 1.0]),
        delay_s=st.sampled_from([0.0, 0.7]),
        noise=st.sampled_from([0.0, 0.3]),
    ),
    acknowledgement_s=st.sampled_from([0.0, 0.2]),
)
STRATEGIES = st.sampled_from(
    [
        Strategy(policy="none"),
        Strategy(policy="gotin"),
        Strategy(policy="coupled", options={"policy": "gotin", "mode": "independent"}),
    ]
)


@settings(max_examples=60)
@given(SCENARIOS, STRATEGIES, st.integers(0, 1000))
def test_nothing_is_lost_and_nothing_counted_twice(scenario: Scenario, strategy: Strategy, seed: int) -> None:
    result = simulate(scenario, strategy, seed)
    series, paced = result.series, result.classes["telemetry"]
    assert result.sent == result.processed + result.waiting_end
    assert (sum(series.arrivals), sum(series.departures)) == (result.sent, result.processed)
    assert series.waiting[-1] == result.waiting_end
    for name in ("sent", "processed", "readings", "generated"):
        assert getattr(result, name) == sum(getattr(one, name) for one in result.classes.values())
    assert paced.processed <= paced.readings <= paced.generated
    assert paced.sent <= paced.generated
    if strategy.policy == "none" or scenario.classes[0].deaf_share == 1.0:
        assert paced.sent == paced.generated
    assert result.interval_max_s >= result.interval_mean_s - 1e-9 >= -1e-9
    assert result.delay_max_s >= result.delay_p95_s >= 0
    # Little's law, exactly: the area under the queue's length is the time that messages waited.
    waited_s = result.delay_all_mean_s * result.sent
    assert result.queue_length_mean * result.seconds == pytest.approx(waited_s, abs=1e-6)
    assert scenario.service.nodes_min <= min(series.nodes_working)
    assert max(series.nodes_working) <= scenario.service.nodes_max


@given(PATTERNS)
def test_devices_come_and_leave_as_the_pattern_says(points: tuple[tuple[int, int], ...]) -> None:
    pattern = Pattern(tuple((float(at_s), count) for at_s, count in points))
    found = list(changes(pattern))
    assert [at_s for at_s, _ in found] == sorted(at_s for at_s, _ in found)
    for at_s in (0.013 + tick / 4 for tick in range(180)):
        assert abs(sum(step for when_s, step in found if when_s <= at_s) - pattern.devices(at_s)) <= _half(
            pattern, at_s
        )


def _half(pattern: Pattern, at_s: float) -> int:
    """Exactly between two whole numbers either may stand."""
    return int(pattern.devices(at_s - 1e-9) != pattern.devices(at_s + 1e-9))


@given(
    st.lists(st.tuples(st.floats(0, 50), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=5),
    st.floats(0, 60),
    st.floats(0.001, 30),
)
def test_work_done_is_the_area_under_the_factor(
    points: list[tuple[float, float]], begin_s: float, work_s: float
) -> None:
    curve = CapacityCurve(sorted(points))
    done_s = curve.done_s(begin_s, work_s)
    edges = sorted({begin_s, *(at_s for at_s, _ in points if begin_s < at_s < done_s)})
    if done_s == math.inf:
        assert curve.factor(1000.0) == 0
        return
    ends = [*edges[1:], done_s]
    area = sum((end - edge) * curve.factor((edge + end) / 2) for edge, end in zip(edges, ends, strict=True))
    assert area == pytest.approx(work_s, rel=1e-6)


@given(st.floats(0, 1), st.sampled_from([0.1, 0.5, 2.0]), st.lists(st.floats(0.01, 5), min_size=1, max_size=20))
def test_every_sample_is_taken_once(phase: float, interval_s: float, gaps_s: list[float]) -> None:
    samples, now_s, taken = GridSamples(phase * interval_s, interval_s), 0.0, 0
    samples.begin(0.0)
    for gap_s in gaps_s:
        now_s = max(now_s + gap_s, samples.next_s)
        count, middle_s = samples.take(now_s)
        assert count >= 1
        assert middle_s <= now_s + 1e-6
        assert samples.next_s > now_s - 1e-6
        taken += count
    assert taken == samples.until(samples.next_s)
