"""The MAPE-K loop: an observation in; a sample for people and proposals for executors out.

No clock, no IO: time is the observation's. All that must survive the process is one frozen value, which the next leader
takes up with ``resume``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from tidegate.loop import monitors, plans, runs
from tidegate.loop.events import Event, EventState
from tidegate.loop.families import FAMILIES, Algorithms, algorithms, family_of, interval_of, paces
from tidegate.loop.knowledge import Finding, Knowledge, Standing
from tidegate.loop.notices import notices, of_plans
from tidegate.loop.planner import Planned, Planner
from tidegate.loop.policy import Judgement, Policy
from tidegate.loop.promises import Promises
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState, PolicyMemory
from tidegate.loop.window import Window
from tidegate.loop.wishes import Wish, Withheld, unchanged, wishes, wishes_of
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.errors import UserError
from tidegate.model.intents import EVERYBODY, Algorithm, Count, Pace
from tidegate.model.notices import Notice
from tidegate.model.observations import NodeState, Observation
from tidegate.model.view import Sample

NOTICES_MAX = 1_000  # that wait to be told
CHOSEN_MAX = 16  # policies that rules wanted, and that are kept as they were made


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``knowledge`` is what the round looked at; None where nothing was to be decided."""

    sample: Sample
    knowledge: Knowledge | None = None
    proposals: tuple[Proposal, ...] = ()
    withheld: tuple[Withheld, ...] = ()


class ControlLoop:
    """Monitor, analyse, plan. Who executes hears it as proposals, and says with ``told`` what came of each.

    Policies are asked in their order, and each sees what was in force before the round. ``choose`` makes a policy, by
    its name, that follows another algorithm, for rules that want that.
    """

    def __init__(
        self,
        policies: Sequence[Policy[Any]],
        events: Mapping[str, Event],
        *,
        window_s: float,
        rules: RuleSet | None = None,
        promises: Promises | None = None,
        choose: Callable[[str, Algorithm], Policy[Any]] | None = None,
    ) -> None:
        self._policies = tuple(policies)
        self._built_in = dict(events)
        self._choose = choose
        self._chosen: dict[bytes, Policy[Any]] = {}
        self.problems: dict[str, str] = {}  # why a policy does not follow the algorithm that a rule wants
        self.knows_rules = True  # without that nobody knows whether a rule's plan shall go on: it does
        self.follow(rules or RuleSet())
        self._planner = Planner(promises or Promises())
        self._window_s = window_s
        self._window = Window(window_s)
        self.state = LoopState()

    def resume(self, state: LoopState) -> None:
        """Go on from a state of this loop, or of another one: a policy state that does not fit begins anew."""
        self.state = state

    @property
    def is_ready(self) -> bool:
        """Whether the next round decides something: rates are known."""
        return self._window.is_full

    def measure_anew(self) -> None:
        """The clock was set: what was seen before says nothing about a rate."""
        self._window = Window(self._window_s)

    def follow(self, rules: RuleSet, applied_at_s: float = 0.0) -> None:
        """Other rules from now on. Plans of those that are gone are taken back, as when their event is over; plans that
        are stuck have been seen by whoever applied these, and are forgotten."""
        self._rules, self._applied_at_s = rules.rules, applied_at_s
        self._ranges = rules.looked_at()
        self._events = {**self._built_in, **rules.looked_for()}

    def watch(self, observation: Observation) -> Sample:
        """Measure without deciding anything: what a follower does."""
        self._window.add(observation)
        return self._sample(observation)

    def tick(self, observation: Observation, mode: Mode, now_s: float | None = None) -> Outcome:
        """One round at ``now_s``, which is the observation's own time where monitoring takes none.

        An observation that is not newer than the last one decides nothing: advice is left to lapse.
        """
        if not self._window.add(observation) or mode.frozen:
            return Outcome(sample=self._sample(observation))
        knowledge = self._knowledge(observation, observation.at_s if now_s is None else now_s)
        before = self.state
        planned = self.decide(knowledge, mode)
        self._notice((*notices(before, self.state, knowledge), *planned.reports))
        return Outcome(
            sample=self._sample(observation),
            knowledge=knowledge,
            proposals=planned.proposals,
            withheld=planned.withheld,
        )

    def decide(self, knowledge: Knowledge, mode: Mode) -> Planned:
        """Analyse and plan. The same state, knowledge and mode give the same plans: nothing else is looked at."""
        under_way = runs.shifted(self.state.runs, knowledge.idle_s(self.state.at_s))
        self.state = msgspec.structs.replace(self.state, runs=under_way)
        if knowledge.complete:
            knowledge = self._analyse(knowledge)
        return self._plan(knowledge, mode)

    def noticed(self) -> None:
        """Everybody was told what is new."""
        self.state = msgspec.structs.replace(self.state, notices=())

    def carried_out(self, proposals: Iterable[Proposal]) -> None:
        """All of these were."""
        self.told({proposal.plan: None for proposal in proposals})

    def told(self, results: Mapping[str, str | None]) -> None:
        """What came of proposals, by their plan: None where it was carried out, else why it was not.

        What failed is told as soon as that is possible; it was decided, and is not decided again.
        """
        in_force, under_way = dict(self.state.planner.in_force), list(self.state.runs)
        checks = dict(self.state.planner.checks)
        for proposal in self.state.pending:
            if proposal.plan not in results:
                continue
            trouble, family = results[proposal.plan], family_of(proposal.action)
            if trouble is not None:
                in_force[family] = in_force.get(family, Standing()).untold(lapses=FAMILIES[family].lapses)
                if family in checks and checks[family].plan == proposal.plan:
                    del checks[family]  # what was not done has no effect
            under_way = [runs.heard(run, family, trouble, self.state.at_s) for run in under_way]
        pending = tuple(proposal for proposal in self.state.pending if proposal.plan not in results)
        planner = msgspec.structs.replace(self.state.planner, in_force=in_force, checks=checks)
        before = self.state
        self.state = msgspec.structs.replace(before, planner=planner, runs=tuple(under_way), pending=pending)
        self._notice(of_plans(before, self.state))  # now: whoever takes over does not know what was so before

    def _notice(self, new: Iterable[Notice]) -> None:
        waiting = (*self.state.notices, *new)[-NOTICES_MAX:]
        self.state = msgspec.structs.replace(self.state, notices=waiting)

    def _knowledge(self, observation: Observation, now_s: float) -> Knowledge:
        standing = self.state.planner.in_force
        given = paces(standing.get("send-rate", Standing()).kept_to(now_s))
        return Knowledge(
            at_s=now_s,
            measured_at_s=observation.at_s,
            complete=self._window.is_full,
            round_s=self._window.round_s,
            properties=monitors.measured(observation, self._window, interval_of(given, EVERYBODY)),
            in_force=standing,
            nodes=tuple(_bare(node) for node in observation.nodes),
            brokers=observation.brokers,
            routes=observation.routes,
        )

    def _analyse(self, knowledge: Knowledge) -> Knowledge:
        """Which events are under way now, and the plans that begin with them or go on."""
        before = self.state.events
        events = {name: event.step(before.get(name, EventState()), knowledge) for name, event in self._events.items()}
        active = tuple(name for name, event in events.items() if event.active)
        called = {rule.name: rule for rule in self._rules if rule.on in active}
        steps = {rule.name: rule.steps for rule in called.values()}
        applied_anew = self.state.rules_at_s != self._applied_at_s
        under_way = runs.advanced(
            self.state.runs,
            steps,
            knowledge,
            knows_rules=self.knows_rules,
            applied_anew=applied_anew,
        )
        had = runs.followed(under_way, steps) if applied_anew else set(self.state.fired)
        fired, made = had & called.keys(), self.state.planner.plans
        for rule in called.values():
            if rule.name not in fired and not any(run.plan.by == rule.name for run in under_way):
                made, fired = made + 1, {*fired, rule.name}
                looked_at = {**knowledge.chain, **self._events[rule.on].looked_at(knowledge)}
                plan = rule.planned(made, looked_at)
                under_way.append(plans.begin(plan, runs.before_rules(under_way, plan, knowledge), knowledge.at_s))
        planner = msgspec.structs.replace(self.state.planner, plans=made)
        ranges = self._ranges.levels(knowledge.properties, self.state.ranges)
        self.state = msgspec.structs.replace(
            self.state,
            ranges=ranges,
            events=events,
            runs=tuple(under_way),
            planner=planner,
            fired=tuple(sorted(fired)),
            rules_at_s=self._applied_at_s,
        )
        return msgspec.structs.replace(knowledge, events=active)

    def _plan(self, knowledge: Knowledge, mode: Mode) -> Planned:
        memories = dict(self.state.policies)
        wished: dict[str, list[Wish]] = {}
        silent: set[str] = set()
        chosen = algorithms(knowledge.kept_to(Algorithms.name))
        for configured in self._policies:
            algorithm = chosen.get(configured.name, Algorithm())
            policy = self._following(configured, algorithm)
            before = memories.get(policy.name, PolicyMemory())
            if before.algorithm != algorithm.name:
                before = PolicyMemory(algorithm=algorithm.name)
            memory, said = _asked(policy, before, knowledge, mode)
            memories[policy.name] = memory
            if not said:
                silent.update(family for family in policy.families if FAMILIES[family].lapses)
            else:
                findings = {**knowledge.findings, policy.name: memory.finding}
                knowledge = msgspec.structs.replace(knowledge, findings=findings)
            for family, wish in said.items():
                wished.setdefault(family, []).append(wish)
        for run in runs.in_order(self.state.runs, [rule.name for rule in self._rules]):
            for family, wish in wishes_of(run).items():
                wished.setdefault(family, []).append(wish)
        for family in silent & wished.keys():
            wished[family].append(unchanged(family, knowledge))
        under_way = {family_of(proposal.action) for proposal in self.state.pending}
        planned = self._planner.step(self.state.planner, wished, knowledge, mode, under_way)
        said_of = {family_of(proposal.action) for proposal in planned.proposals}
        self.state = msgspec.structs.replace(
            self.state,
            at_s=knowledge.at_s,
            policies=memories,
            planner=planned.state,
            runs=tuple(runs.settled(runs.tried(run, planned.withheld, knowledge), said_of) for run in self.state.runs),
            pending=(*self.state.pending, *planned.proposals),
        )
        return planned

    def _following(self, configured: Policy[Any], algorithm: Algorithm) -> Policy[Any]:
        """The policy that follows this algorithm; it is made once. A rule may have left one behind that there is not
        any more, or that does not go with other settings."""
        self.problems.pop(configured.name, None)
        if self._choose is None or algorithm == Algorithm():
            return configured
        key = msgspec.json.encode((configured.name, algorithm))
        if key not in self._chosen:
            self._chosen = dict(list(self._chosen.items())[1 - CHOSEN_MAX :])
            try:
                self._chosen[key] = self._choose(configured.name, algorithm)
            except UserError as error:
                words = f"The policy {configured.name} is the configured one, not what a rule wants: {error}"
                self.problems[configured.name] = words
                return configured
        return self._chosen[key]

    def _sample(self, observation: Observation) -> Sample:
        state = self.state
        if not math.isfinite(observation.at_s):
            observation = msgspec.structs.replace(observation, at_s=state.at_s)
        given = paces(state.planner.in_force.get("send-rate", Standing()).kept_to(observation.at_s))
        asked = cast("Count | None", state.planner.in_force.get("nodes", Standing()).values.get(""))
        finding = state.policies.get("send-rate", PolicyMemory()).finding
        chain = monitors.measured(observation, self._window, interval_of(given, EVERYBODY))["chain"]
        return Sample(
            at_s=observation.at_s,
            age_s=observation.head_age_s,
            arrival_per_s=chain["arrival_per_s"],
            departure_per_s=chain["departure_per_s"],
            waiting=observation.waiting,
            devices=observation.devices,
            interval_s=chain["interval_s"],
            capacity_per_s=finding.found.get("capacity_per_s"),
            phase=finding.phase,
            demand_per_s=finding.found.get("demand_per_s"),
            nodes_working=round(chain["nodes_working"]),
            nodes_wanted=None if asked is None else asked.nodes,
            classes=_intervals(given),
        )


def _asked(
    policy: Policy[Any], memory: PolicyMemory, knowledge: Knowledge, mode: Mode
) -> tuple[PolicyMemory, dict[str, Wish]]:
    """What a policy wants. One that is off for all it speaks for is not asked, and begins anew when it is on again."""
    if all(mode.of(family) == "off" for family in (*policy.families, *policy.serves)):
        off = Finding(phase="off")
        return PolicyMemory(finding=off, algorithm=memory.algorithm), wishes(
            policy.name, policy.families, Judgement(finding=off)
        )
    try:
        state = msgspec.convert(memory.state, policy.state_type)
    except msgspec.ValidationError:
        state = policy.initial()
    after, judgement = policy.step(state, knowledge)
    if judgement is None:
        return memory, {}
    memory = PolicyMemory(state=msgspec.to_builtins(after), finding=judgement.finding, algorithm=memory.algorithm)
    return memory, wishes(policy.name, policy.families, judgement)


def _intervals(given: Mapping[str, Pace]) -> dict[str, float]:
    """The interval that each class was given for itself."""
    return {name: pace.interval_s for name, pace in given.items() if name != EVERYBODY and pace.interval_s is not None}


def _bare(node: NodeState) -> NodeState:
    """Without what only people look at."""
    return msgspec.structs.replace(node, batches=(), rejects={}, rejected_devices=())
