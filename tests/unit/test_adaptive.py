"""Single decisions of ``adaptive``: when it holds nobody, whom it holds, and what it does not believe."""

import msgspec
import pytest

from tidegate.control.policy import ClassSeen, Seen, Verdict
from tidegate.control.scaling.provisioning import ProvisioningSettings
from tidegate.control.send_rate.adaptive import Adaptive, AdaptiveSettings, AdaptiveState
from tidegate.model.classes import DeviceClass

CLASSES = (
    DeviceClass(name="alarm", weight=16.0, cost=1.0),
    DeviceClass(name="door", weight=1.0, event_driven=True, cost=1.0),
    DeviceClass(name="rescue", weight=1.0, never_delay=True, event_driven=True, cost=1.0),
    DeviceClass(name="telemetry", topics=("#",), weight=1.0, cost=1.0),
)
PLAIN = Adaptive(AdaptiveSettings())
CLASSED = Adaptive(AdaptiveSettings(classes=CLASSES))


def seen(at_s: float, **changed) -> Seen:
    """100 devices want 200 msg/s; two nodes take 50 each, and are busy."""
    usual = {
        "at_s": at_s,
        "measured_at_s": at_s,
        "overload": False,
        "waiting": 2,
        "head_age_s": 0.1,
        "arrival_per_s": 200.0,
        "departure_per_s": 100.0,
        "devices": 100,
        "nodes_working": 2,
        "node_rate_per_s": 50.0,
        "busy_share": 1.0,
    }
    return Seen(**{**usual, **changed})


def follow(policy: Adaptive, *views: Seen, obedient: bool = False) -> tuple[AdaptiveState, Verdict]:
    """What is said last; each view sees the advice in force before it, and what obedient devices make of that."""
    state, interval_s, intervals_s = policy.initial(), 0.0, {}
    for one in views:
        arrival_per_s = one.devices / max(interval_s, 0.5) if obedient else one.arrival_per_s
        view = msgspec.structs.replace(one, arrival_per_s=arrival_per_s)
        state, verdict = policy.step(
            state, msgspec.structs.replace(view, interval_s=interval_s, intervals_s=dict(intervals_s))
        )
        interval_s = 1 / verdict.rate_per_device if verdict.rate_per_device else 0.0
        intervals_s = {name: 1 / rate if rate else 0.0 for name, rate in verdict.classes.items()}
    return state, verdict


def test_without_evidence_nobody_is_held() -> None:
    _, verdict = follow(PLAIN, *(seen(at_s, node_rate_per_s=None, waiting=500) for at_s in range(10)))
    assert (verdict.phase, verdict.rate_per_device, verdict.capacity_per_s) == ("no evidence", None, None)


def test_what_fits_is_left_alone() -> None:
    _, verdict = follow(PLAIN, *(seen(at_s, devices=40, arrival_per_s=80.0) for at_s in range(10)))
    assert (verdict.phase, verdict.rate_per_device) == ("idle", None)


def test_what_does_not_fit_is_held_to_the_capacity() -> None:
    views = [seen(at_s, arrival_per_s=200.0 if at_s < 2 else 100.0, waiting=25) for at_s in range(20)]
    _, verdict = follow(PLAIN, *views)
    assert verdict.rate_per_device == pytest.approx(1.0, rel=0.03)
    assert verdict.demand_per_s == pytest.approx(200, rel=0.01)


def test_a_backlog_is_drained_and_no_deeper_than_the_cut() -> None:
    _, mild = follow(PLAIN, *(seen(at_s, waiting=120) for at_s in range(5)))
    _, deep = follow(PLAIN, *(seen(at_s, waiting=100_000) for at_s in range(40)), obedient=True)
    assert mild.rate_per_device < 1.0
    assert deep.rate_per_device == pytest.approx(0.5 * 1.005, rel=0.01)


def test_a_node_that_restarts_releases_nobody() -> None:
    """It is away for twenty seconds, and what it did before is known."""
    before = [seen(at_s) for at_s in range(10)]
    away = [
        seen(at_s, nodes_working=0, nodes_starting=2, node_rate_per_s=None, busy_share=0.0, waiting=2_000)
        for at_s in range(10, 30)
    ]
    state, verdict = follow(PLAIN, *before, *away)
    assert verdict.rate_per_device is not None
    assert verdict.rate_per_device < 1.0
    assert state.nodes_counted_on == 2


def test_in_shadow_mode_it_does_not_believe_that_it_was_heard() -> None:
    """Nobody is told anything, so devices go on as they do, and the advice that would be given stays the same."""
    state, rates = PLAIN.initial(), []
    for at_s in range(60):
        state, verdict = PLAIN.step(state, seen(at_s, waiting=25))
        rates.append(verdict.rate_per_device)
    assert verdict.demand_per_s == pytest.approx(200, rel=0.01)
    assert rates[-1] == pytest.approx(rates[10], rel=0.05)


@pytest.mark.parametrize("pause_s", [60.0, 600.0, 11_200.0, 1e6])
def test_after_a_pause_it_goes_on_learning(pause_s: float) -> None:
    after = [seen(20 + pause_s + at_s, node_rate_per_s=40.0) for at_s in range(60)]
    _, verdict = follow(PLAIN, *(seen(at_s) for at_s in range(20)), *after)
    assert verdict.capacity_per_s == pytest.approx(80, rel=0.05)


def test_a_clock_that_goes_back_breaks_nothing() -> None:
    _, verdict = follow(PLAIN, *(seen(5_000 + at_s) for at_s in range(20)), *(seen(at_s) for at_s in range(20)))
    assert verdict.capacity_per_s == pytest.approx(100, rel=0.05)


def classed(at_s: float, **devices: int) -> Seen:
    classes = tuple(
        ClassSeen(name=name, devices=number, arrival_per_s=2.0 * number) for name, number in devices.items()
    )
    total = sum(devices.values())
    return seen(at_s, devices=total, arrival_per_s=2.0 * total, classes=classes, waiting=25)


def test_alarms_go_first_and_telemetry_pays() -> None:
    _, verdict = follow(CLASSED, *(classed(at_s, alarm=20, telemetry=80) for at_s in range(5)))
    assert verdict.classes["alarm"] is None
    assert verdict.classes["telemetry"] < 1.0
    assert verdict.rate_per_device == verdict.classes["telemetry"], "who names no class is counted as telemetry"


def test_an_event_driven_class_widens_its_band_and_keeps_no_interval() -> None:
    _, verdict = follow(CLASSED, *(classed(at_s, door=100) for at_s in range(3)))
    assert verdict.classes == {}
    assert verdict.dead_bands["door"] == pytest.approx(2**0.5, rel=0.05)


def test_who_must_never_be_delayed_is_not() -> None:
    _, verdict = follow(CLASSED, *(classed(at_s, rescue=80, telemetry=80) for at_s in range(5)))
    assert "rescue" not in verdict.classes
    assert verdict.dead_bands == {"rescue": 1.0}
    assert verdict.classes["telemetry"] is not None


def test_where_no_node_runs_one_is_asked_for() -> None:
    policy = Adaptive(AdaptiveSettings(provisioning=ProvisioningSettings(nodes_min=1, nodes_max=4)))
    nobody = [seen(at_s, nodes_working=0, node_rate_per_s=None) for at_s in range(2)]
    _, verdict = follow(policy, *nobody)
    assert verdict.nodes_wanted == 1


def test_nodes_that_take_more_than_they_were_thought_to_are_believed() -> None:
    """Not at their limit, so they report nothing; but more leaves than the estimate says they can."""
    learnt = [seen(at_s) for at_s in range(20)]
    faster = [
        seen(at_s, node_rate_per_s=None, busy_share=0.0, arrival_per_s=130.0, departure_per_s=130.0)
        for at_s in range(20, 80)
    ]
    _, verdict = follow(PLAIN, *learnt, *faster)
    assert verdict.capacity_per_s > 125


def test_what_is_not_known_of_a_class_is_no_zero() -> None:
    """A gateway restarts: for some rounds nobody knows how much of what arrives is whose."""
    before = [classed(at_s, alarm=20, telemetry=80) for at_s in range(20)]
    silent = tuple(msgspec.structs.replace(one, arrival_per_s=None) for one in before[0].classes)
    after = [msgspec.structs.replace(classed(20 + at_s, alarm=20, telemetry=80), classes=silent) for at_s in range(9)]
    state, verdict = follow(CLASSED, *before)
    later, last = follow(CLASSED, *before, *after)
    assert last.demand_per_s == pytest.approx(verdict.demand_per_s, rel=0.01)
    assert last.classes == pytest.approx(verdict.classes, rel=0.1)
    assert later.work == state.work
