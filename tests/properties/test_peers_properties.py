"""Whatever sensors say, every peer stays within its bounds, is a function of its input, and its state survives JSON."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.policy import Seen, SendRatePolicy
from tidegate.control.scaling.autoscaler import (
    Autoscaler,
    OneStep,
    OneStepSettings,
    Threshold,
    ThresholdSettings,
)
from tidegate.control.scaling.coupling import Coupled, CoupledSettings
from tidegate.control.send_rate.credits import Credits, CreditsSettings
from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.control.send_rate.gradient2 import Gradient2, Gradient2Settings
from tidegate.control.send_rate.oracle import Oracle, OracleSettings, Truth
from tidegate.control.send_rate.spark_pid import SparkPid, SparkPidSettings
from tidegate.model.advice import RATE_PER_S_MIN

amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e7))
views = st.builds(
    Seen,
    at_s=st.just(0.0),
    measured_at_s=st.just(0.0),
    overload=st.booleans(),
    waiting=st.integers(0, 10**9),
    head_age_s=amounts,
    arrival_per_s=amounts,
    departure_per_s=amounts,
    devices=st.integers(0, 10**6),
    nodes_working=st.integers(0, 50),
    nodes_starting=st.integers(0, 3),
    node_rate_per_s=st.one_of(st.none(), st.floats(1e-3, 1e6)),
)
rounds = st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.0, 10.0), views), max_size=25)


def timed(told: list[tuple[float, float, Seen]]) -> list[Seen]:
    at_s, views = 0.0, []
    for passed_s, delay_s, seen in told:
        at_s += passed_s
        views.append(msgspec.structs.replace(seen, at_s=at_s, measured_at_s=max(0.0, at_s - delay_s)))
    return views


def oracle(default: float) -> Oracle:
    policy = Oracle(OracleSettings(default_rate_per_s=default))
    policy.truth = lambda: Truth(capacity_per_s=17.0, devices=90, waiting=400, nodes_working=3)
    return policy


def coupled(default: float) -> Coupled:
    return Coupled(CoupledSettings(), Gotin(GotinSettings(default_rate_per_s=default)), Threshold(ThresholdSettings()))


PEERS: dict[str, Callable[[float], SendRatePolicy[Any]]] = {
    "spark-pid": lambda default: SparkPid(SparkPidSettings(default_rate_per_s=default, derivative=0.1)),
    "gradient2": lambda default: Gradient2(Gradient2Settings(default_rate_per_s=default)),
    "credits": lambda default: Credits(CreditsSettings(default_rate_per_s=default)),
    "oracle": oracle,
    "coupled": coupled,
}


@pytest.mark.parametrize("name", PEERS)
@given(default=st.floats(RATE_PER_S_MIN, 1e4), told=rounds)
@settings(max_examples=40, deadline=None)
def test_every_peer(name: str, default: float, told: list[tuple[float, float, Seen]]) -> None:
    policy = PEERS[name](default)
    state = policy.initial()
    for seen in timed(told):
        before = state
        state, verdict = policy.step(before, seen)
        assert policy.step(before, seen) == (state, verdict)
        assert verdict.rate_per_device is None or RATE_PER_S_MIN <= verdict.rate_per_device <= default
        assert (verdict.phase == "idle") == (verdict.rate_per_device is None)
        assert verdict.rule
        assert verdict.rejected
        assert msgspec.convert(msgspec.to_builtins(state), policy.state_type) == state
        assert msgspec.json.decode(msgspec.json.encode(state), type=policy.state_type) == state


AUTOSCALERS: dict[str, Callable[[int, int], Autoscaler[Any]]] = {
    "threshold": lambda least, most: Threshold(ThresholdSettings(nodes_min=least, nodes_max=most)),
    "one-step": lambda least, most: OneStep(OneStepSettings(nodes_min=least, nodes_max=most)),
}


@pytest.mark.parametrize("name", AUTOSCALERS)
@given(bounds=st.tuples(st.integers(1, 9), st.integers(0, 9)), told=rounds)
@settings(max_examples=40, deadline=None)
def test_every_autoscaler(name: str, bounds: tuple[int, int], told: list[tuple[float, float, Seen]]) -> None:
    least, most = bounds[0], bounds[0] + bounds[1]
    autoscaler = AUTOSCALERS[name](least, most)
    state = autoscaler.initial()
    for seen in timed(told):
        before = state
        state, verdict = autoscaler.step(before, seen)
        assert autoscaler.step(before, seen) == (state, verdict)
        assert least <= verdict.nodes_wanted <= most
        assert not verdict.saturated or verdict.nodes_wanted == most
        assert verdict.rule
        assert msgspec.json.decode(msgspec.json.encode(state), type=autoscaler.state_type) == state


@given(told=rounds)
@settings(max_examples=40, deadline=None)
def test_the_threshold_autoscaler_moves_one_at_a_time(told: list[tuple[float, float, Seen]]) -> None:
    autoscaler = Threshold(ThresholdSettings(nodes_max=9, period_s=5.0))
    state, changed_at_s = autoscaler.initial(), None
    for seen in timed(told):
        before = state.wanted
        state, verdict = autoscaler.step(state, seen)
        if before is None or verdict.nodes_wanted == before:
            continue
        assert abs(verdict.nodes_wanted - before) == 1
        assert seen.nodes_starting == 0
        assert changed_at_s is None or seen.at_s - changed_at_s >= 5.0
        changed_at_s = seen.at_s


@given(told=rounds)
@settings(max_examples=40, deadline=None)
def test_coupled_state_aware_holds_nobody_before_the_autoscaler_is_saturated(
    told: list[tuple[float, float, Seen]],
) -> None:
    policy = coupled(2.0)
    state = policy.initial()
    for seen in timed(told):
        before = state
        state, verdict = policy.step(before, seen)
        if state.held and not before.held:
            assert seen.overload
            assert verdict.nodes_wanted == 4
        if state.held and before.held:
            assert verdict.nodes_wanted == before.nodes_wanted
