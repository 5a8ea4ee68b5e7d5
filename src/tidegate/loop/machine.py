"""The MAPE-K loop: an observation in; a sample for people and proposals for executors out.

No clock, no IO: time is the observation's. All that must survive the process is one frozen value, ``LoopState``, which
the next leader takes up with ``resume``.
"""

from typing import Any, Generic

import msgspec

from tidegate.control.policy import ClassSeen, PolicyState, Seen, SendRatePolicy, Verdict
from tidegate.loop import planner, routing
from tidegate.loop.events import Event, EventState
from tidegate.loop.monitors import Monitor, WorkAtLimit
from tidegate.loop.planner import Given, Proposal, Scaled, Spread
from tidegate.model.decisions import Mode
from tidegate.model.observations import Observation
from tidegate.model.routes import Routes
from tidegate.model.view import Sample


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the loop has decided so far. ``policy`` is the policy's own state, as plain values."""

    policy: dict[str, Any] = {}
    overload: EventState = EventState()
    given: Given = Given()
    scaled: Scaled = Scaled()
    spread: Spread = Spread()
    routes: Routes | None = None
    phase: str = "idle"
    capacity_per_s: float | None = None
    demand_per_s: float | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    sample: Sample
    proposals: tuple[Proposal, ...] = ()


class ControlLoop(Generic[PolicyState]):
    """Monitor, analyse, plan. Who executes hears it as proposals, and may take a tick back with ``resume``."""

    def __init__(
        self, policy: SendRatePolicy[PolicyState], overload: Event, *, window_s: float, advice_lifetime_s: float
    ) -> None:
        self._policy = policy
        self._overload = overload
        self._monitor = Monitor(window_s)
        self._lifetime_s = advice_lifetime_s
        self.state = LoopState()

    def resume(self, state: LoopState) -> None:
        """Go on from a state of this loop, or of another one: a policy state that does not fit begins anew."""
        self.state = state

    def watch(self, observation: Observation) -> Sample:
        """Measure without deciding anything: what a follower does."""
        self._monitor.add(observation)
        return self._sample(observation)

    def tick(self, observation: Observation, mode: Mode, now_s: float | None = None) -> Outcome:
        """One round at ``now_s``, which is the observation's own time where monitoring takes none.

        An observation that is not newer than the last one decides nothing: advice is left to lapse.
        """
        if not self._monitor.add(observation) or mode.frozen:
            return Outcome(sample=self._sample(observation))
        routes, route = routing.route(
            self.state.routes, observation.brokers, self.state.phase, in_force=observation.routes
        )
        spread, moves = planner.spread(
            self.state.spread, observation.nodes, self.state.scaled.in_force, observation.at_s
        )
        self.state = msgspec.structs.replace(self.state, routes=routes, spread=spread)
        proposals = [route, planner.move(moves, observation.nodes, self.state.phase)]
        # Before the first window is full no rate is known, and what is not known is no overload.
        if self._monitor.is_full:
            proposals += self._act(observation, mode, observation.at_s if now_s is None else now_s)
        return Outcome(sample=self._sample(observation), proposals=tuple(one for one in proposals if one is not None))

    def _act(self, observation: Observation, mode: Mode, now_s: float) -> list[Proposal | None]:
        """Analyse and plan for send rates and nodes: properties, event, policy, advice and scale."""
        measurements = self._monitor.properties(self.state.given.in_force(now_s))
        overload = self._overload.step(self.state.overload, measurements, observation.at_s)
        seen = _seen(observation, measurements, self._monitor.work(), self.state.given.kept_to(now_s))
        seen = msgspec.structs.replace(seen, at_s=now_s, overload=overload.active)
        policy_state, verdict = self._decide(seen, mode)
        acts = mode.send_rate != "shadow"
        given, advice = planner.advise(self.state.given, seen, verdict, measurements, self._lifetime_s, acts=acts)
        scaled, scale = planner.scale(self.state.scaled, seen, verdict, measurements, acts=acts)
        self.state = msgspec.structs.replace(
            self.state,
            policy=msgspec.to_builtins(policy_state),
            overload=overload,
            given=given,
            scaled=scaled,
            phase=verdict.phase,
            capacity_per_s=verdict.capacity_per_s,
            demand_per_s=verdict.demand_per_s,
        )
        return [advice, scale]

    def _decide(self, seen: Seen, mode: Mode) -> tuple[PolicyState, Verdict]:
        """The policy's word, or, where the operator switched it off, that nobody is held."""
        if mode.send_rate == "off":
            rejected = "go on holding devices: the operator does not allow it"
            rule = "send-rate protection is off"
            off = Verdict(phase="off", rate_per_device=None, capacity_per_s=None, rule=rule, rejected=rejected)
            return self._policy.initial(), off
        try:
            state = msgspec.convert(self.state.policy, self._policy.state_type)
        except msgspec.ValidationError:
            state = self._policy.initial()
        return self._policy.step(state, seen)

    def _sample(self, observation: Observation) -> Sample:
        interval_s = self.state.given.in_force(observation.at_s)
        measurements = self._monitor.properties(interval_s)
        return Sample(
            at_s=observation.at_s,
            age_s=observation.head_age_s,
            arrival_per_s=measurements["arrival_per_s"],
            departure_per_s=measurements["departure_per_s"],
            waiting=observation.waiting,
            devices=observation.devices,
            interval_s=interval_s,
            capacity_per_s=self.state.capacity_per_s,
            phase=self.state.phase,
            demand_per_s=self.state.demand_per_s,
            nodes_working=sum(node.is_working for node in observation.nodes),
            nodes_wanted=self.state.scaled.nodes_wanted,
            classes=self.state.given.kept_to(observation.at_s).classes,
        )


def _seen(observation: Observation, measurements: dict[str, float], work: WorkAtLimit, given: Given) -> Seen:
    return Seen(
        at_s=observation.at_s,
        measured_at_s=observation.at_s,
        overload=False,
        waiting=observation.waiting,
        held=observation.held,
        head_age_s=observation.head_age_s,
        arrival_per_s=measurements["arrival_per_s"],
        departure_per_s=measurements["departure_per_s"],
        devices=observation.devices,
        nodes_working=sum(node.is_working for node in observation.nodes),
        nodes_starting=observation.starting,
        node_rate_per_s=work.node_rate_per_s,
        busy_share=work.busy_share,
        classes=tuple(
            ClassSeen(name=name, devices=one.devices, arrival_per_s=work.classes_per_s.get(name, 0.0))
            for name, one in observation.classes.items()
        ),
        interval_s=given.interval_s,
        intervals_s=given.classes,
        dead_bands=given.dead_bands,
    )
