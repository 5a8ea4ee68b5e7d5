"""What the planner promises, over every policy that is registered: nothing twice at once, nothing repeated, and nothing
that does not work."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looks import CLASSES, Look, looks, observations
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.effects import COOLING_S, LASTING_S
from tidegate.loop.families import family_of
from tidegate.loop.machine import ControlLoop, Outcome
from tidegate.loop.policies import registry
from tidegate.loop.state import LoopState
from tidegate.model.actions import Advise
from tidegate.model.decisions import Mode
from tidegate.model.notices import EffectReport
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation

POLICIES = sorted(set(registry.NAMES) - {"oracle"})  # which asks a simulated world, and is never shipped


def loop_of(policy: str) -> ControlLoop:
    return ControllerSettings(policy=policy, overload="head_age_s > 1", nodes_max=3).control_loop(CLASSES)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=8, deadline=None)
@given(seen=looks, heard=st.lists(st.booleans(), min_size=1, max_size=7))
def test_no_family_is_acted_upon_twice_at_once(policy: str, seen: list[Look], heard: list[bool]) -> None:
    """Some of what is decided is not heard of for a while."""
    loop = loop_of(policy)
    for number, observation in enumerate(observations(seen)):
        under_way = {family_of(one.action) for one in loop.state.pending}
        outcome = loop.tick(observation, Mode())
        families = [family_of(one.action) for one in outcome.proposals]
        assert len(families) == len(set(families))
        assert not under_way & set(families)
        if heard[number % len(heard)]:
            loop.carried_out(loop.state.pending)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=8, deadline=None)
@given(seen=looks, fails=st.lists(st.booleans(), min_size=1, max_size=7))
def test_what_failed_is_told_again_and_not_decided_again(policy: str, seen: list[Look], fails: list[bool]) -> None:
    """The same is never written down twice in a row: what is decided is decided."""
    loop, last = loop_of(policy), dict[str, object]()
    for number, observation in enumerate(observations(seen)):
        outcome = loop.tick(observation, Mode())
        failed = fails[number % len(fails)]
        loop.told({one.plan: "the bus is away" if failed else None for one in outcome.proposals})
        for proposal in outcome.proposals:
            if proposal.recorded and not isinstance(proposal.action, Advise):
                assert last.get(family_of(proposal.action)) != proposal.action
                last[family_of(proposal.action)] = proposal.action


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=8, deadline=None)
@given(seen=looks)
def test_every_round_comes_out_the_same_from_a_stored_state(policy: str, seen: list[Look]) -> None:
    loop = loop_of(policy)
    for observation in observations(seen):
        before = msgspec.json.encode(loop.state)
        outcome = loop.tick(observation, Mode())
        if outcome.knowledge is not None:
            again = loop_of(policy)
            again.resume(msgspec.json.decode(before, type=LoopState))
            knowledge = msgspec.json.decode(msgspec.json.encode(outcome.knowledge), type=type(outcome.knowledge))
            assert again.decide(knowledge, Mode()).proposals == outcome.proposals
        loop.carried_out(outcome.proposals)


class DeafFleet:
    """Devices that send twice what the node takes, whatever they are told."""

    def __init__(self, policy: str, rate: float, devices: int) -> None:
        self.loop, self.second = loop_of(policy), 0
        self._rate, self._devices = rate, devices

    def round(self) -> Outcome:
        self.second += 1
        at_s, arrived = 1_000.0 + self.second, int(self._rate * self._devices * self.second)
        committed = arrived // 2
        classes = {"telemetry": ClassState(devices=self._devices, publishes=arrived)}
        gateway = GatewayState(
            name="g",
            address="h:1",
            measured_at_s=at_s,
            connections=self._devices,
            publishes=arrived,
            publishers=self._devices,
            acknowledged=arrived,
            advised=0,
            classes=classes,
        )
        node = NodeState(
            name="node-1",
            alive=True,
            slices=(0,),
            rows=committed,
            limit_rows=float(committed),
            limit_s=float(self.second),
            committed_at_s=at_s,
        )
        seen = Observation(
            at_s=at_s,
            arrived=arrived,
            committed=committed,
            head_age_s=self.second / 2,
            devices=self._devices,
            committed_at_s=at_s,
            gateways=(gateway,),
            nodes=(node,),
        )
        outcome = self.loop.tick(seen, Mode())
        self.loop.carried_out(outcome.proposals)
        return outcome


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"none"}))
@settings(max_examples=5, deadline=None)
@given(rate=st.sampled_from([0.05, 0.5, 2.0]), devices=st.integers(50, 500))
def test_advice_that_nobody_follows_is_taken_back_and_not_given_again_too_soon(
    policy: str, rate: float, devices: int
) -> None:
    fleet, contradicted_s = DeafFleet(policy, rate, devices), list[float]()
    for _ in range(400):
        outcome = fleet.round()
        now_s = 1_000.0 + fleet.second
        reports = [one for one in fleet.loop.state.notices if isinstance(one, EffectReport)]
        fleet.loop.noticed()
        contradicted_s += [now_s for one in reports if not one.shown and one.family == "send-rate"]
        cooling = bool(contradicted_s) and now_s < contradicted_s[-1] + COOLING_S
        for proposal in outcome.proposals:
            if cooling and isinstance(proposal.action, Advise):
                held = fleet.loop.state.planner.cooling["send-rate"].instead
                assert proposal.action.advice.interval_s <= max(pace.interval_s or 0.0 for pace in held.values())  # type: ignore[union-attr]
        for check in fleet.loop.state.planner.checks.values():
            late_s = now_s - check.since_s - check.expects.within_s
            # Of so few that a single message shows it comes and goes, and is judged when that has gone on for a while.
            assert late_s <= 3 * LASTING_S + 1.0, "what does not show is found out in time"
    if rate >= 0.5 and fleet.loop.state.planner.plans > 1:
        assert contradicted_s, "what does not show is found out"
