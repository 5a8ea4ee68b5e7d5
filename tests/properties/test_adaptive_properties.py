"""What holds for ``adaptive`` whatever it sees: advice is usable, shares fit, weights count, nothing oscillates."""

import math

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.control.policy import ClassSeen, Seen, Verdict
from tidegate.control.send_rate.adaptive import Adaptive, AdaptiveSettings, AdaptiveState
from tidegate.control.send_rate.sharing import Party, level
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.classes import DeviceClass
from tidegate.sim.run import simulate
from tidegate.sim.scenario import Load, Monitoring, Scenario, Service, Strategy

DEFAULT_PER_S = 2.0
CLASSES = (
    DeviceClass(name="alarm", weight=16.0, cost=1.0),
    DeviceClass(name="command", weight=4.0, cost=1.0),
    DeviceClass(name="telemetry", weight=1.0, cost=1.0),
)
POLICY = Adaptive(AdaptiveSettings(default_rate_per_s=DEFAULT_PER_S, classes=CLASSES))

positive = st.floats(1e-3, 1e6)
counts = st.integers(0, 10**6)


@st.composite
def views(draw: st.DrawFn) -> Seen:
    """Anything that sensors might say, also what makes no sense together."""
    devices = [draw(counts) for _ in CLASSES]
    arrivals = [draw(st.floats(0, 1e6)) for _ in CLASSES]
    return Seen(
        at_s=0.0,
        measured_at_s=0.0,
        overload=draw(st.booleans()),
        waiting=draw(counts),
        held=draw(st.integers(0, 1000)),
        head_age_s=draw(st.floats(0, 1e4)),
        arrival_per_s=sum(arrivals),
        departure_per_s=draw(st.floats(0, 1e6)),
        devices=sum(devices) + draw(st.integers(0, 10)),
        nodes_working=draw(st.integers(0, 20)),
        nodes_starting=draw(st.integers(0, 5)),
        node_rate_per_s=draw(st.none() | positive),
        busy_share=draw(st.floats(0, 1)),
        classes=tuple(
            ClassSeen(name=one.name, devices=number, arrival_per_s=rate)
            for one, number, rate in zip(CLASSES, devices, arrivals, strict=True)
        ),
    )


@st.composite
def stories(draw: st.DrawFn) -> list[Seen]:
    at_s, found = 1000.0, []
    for view in draw(st.lists(views(), min_size=1, max_size=12)):
        at_s += draw(st.floats(0.05, 20))
        late_s = draw(st.sampled_from([0.0, 0.5, 5.0]))
        found.append(msgspec.structs.replace(view, at_s=at_s, measured_at_s=at_s - late_s))
    return found


def told(story: list[Seen]) -> list[tuple[AdaptiveState, Seen, Verdict]]:
    state, found = POLICY.initial(), []
    for seen in story:
        state, verdict = POLICY.step(state, seen)
        found.append((state, seen, verdict))
    return found


@given(stories())
def test_advice_is_positive_and_finite_and_can_be_named(story: list[Seen]) -> None:
    for _, _, verdict in told(story):
        for rate in (verdict.rate_per_device, *verdict.classes.values()):
            assert rate is None or (math.isfinite(rate) and rate >= 1 / INTERVAL_S_MAX)
        assert all(1 <= band < math.inf for band in verdict.dead_bands.values())
        assert verdict.capacity_per_s is None or (math.isfinite(verdict.capacity_per_s) and verdict.capacity_per_s > 0)


@given(stories())
def test_what_is_shared_out_is_no_more_than_the_capacity(story: list[Seen]) -> None:
    """In work, because messages of one class may take more than another's. But for the longest interval that advice
    can name."""
    for state, seen, verdict in told(story):
        if state.phase in ("idle", "no evidence") or verdict.capacity_per_s is None:
            continue
        capacity = verdict.capacity_per_s * state.work.mixed(state.fleet.demand_per_s(), POLICY._costs)
        shared = floor = 0.0
        for name, one in state.fleet.classes.items():
            work = one.devices * state.work.of(name, POLICY._costs)
            shared += work * min(state.told[name], one.demand_per_device)
            floor += work / INTERVAL_S_MAX
        assert shared <= (capacity + floor) * (1 + 1e-6), seen


@given(stories())
def test_a_higher_class_never_gets_less_than_its_weight_entitles_it_to(story: list[Seen]) -> None:
    """Unless the lower one has only what nobody goes below: the longest interval that advice can name."""
    weights = {one.name: one.weight for one in CLASSES}
    for state, _, verdict in told(story):
        if state.phase in ("idle", "no evidence"):
            continue
        rates = {name: state.told[name] for name in weights if name in state.told}
        for high, rate in rates.items():
            for low, other in rates.items():
                held = verdict.classes.get(high) is not None
                if weights[high] > weights[low] and held and other > 1 / INTERVAL_S_MAX:
                    least = min(other, state.fleet.classes[low].demand_per_device) * weights[high] / weights[low]
                    assert rate >= least * (1 - 1e-9)


@given(stories())
def test_a_state_survives_being_written_down(story: list[Seen]) -> None:
    """The next leader goes on from JSON, and decides the same."""
    state = POLICY.initial()
    for seen in story:
        kept = msgspec.convert(msgspec.json.decode(msgspec.json.encode(state)), AdaptiveState)
        assert kept == state
        (state, verdict), (_, same) = POLICY.step(state, seen), POLICY.step(kept, seen)
        assert verdict == same


@given(
    st.lists(st.tuples(positive, positive, positive), min_size=1, max_size=8),
    st.floats(0, 1e9),
)
@example([(1.0, 188754.0, 0.03125), (0.0625, 1.6726927760755643, 1.0), (90629.0, 189561.0, 0.00390625)], 6640.0)
def test_shares_fit_and_nobody_gets_more_than_it_wants(
    parties: list[tuple[float, float, float]], capacity: float
) -> None:
    found = [Party(*one) for one in parties]
    chosen = level(found, capacity)
    rates = [party.rate(chosen) for party in found]
    assert sum(party.size * rate for party, rate in zip(found, rates, strict=True)) <= capacity * (1 + 1e-9) + 1e-9
    assert all(0 <= rate <= party.wants for party, rate in zip(found, rates, strict=True))


@pytest.mark.parametrize(("devices", "node_count"), [(20, 5), (30, 4), (200, 50)])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_around_a_constant_load_advice_stays_within_five_per_cent(devices: int, node_count: int, seed: int) -> None:
    """Standard deviation over mean of the advised interval, once the beginning is over."""
    scenario = Scenario(
        name="constant",
        seconds=180,
        classes=(Load(name="telemetry", pattern=((0.0, devices), (180.0, devices))),),
        service=Service(rate_per_s=5.5, noise=0.1, nodes_at_start=node_count, nodes_max=node_count),
        monitoring=Monitoring(period_s=1.0),
    )
    intervals = simulate(scenario, Strategy(policy="adaptive"), seed).series.interval_s[60:]
    mean = sum(intervals) / len(intervals)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in intervals) / len(intervals))
    assert deviation <= 0.05 * mean
