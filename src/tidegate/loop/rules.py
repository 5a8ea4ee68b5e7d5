"""Rules: what an operator wants done when an event begins, in his own words.

A rule names an event and the steps of a plan. What its steps want comes before what policies want, for as long as the
event lasts; then it is taken back, unless the rule says that it stays. A step may also let a policy follow another
algorithm, or the same one with other options.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tidegate.loop.events import BUILT_IN, Event, EventRule
from tidegate.loop.expressions import Expression
from tidegate.loop.monitors import Ranges, names
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.errors import UserError
from tidegate.model.intents import Algorithm, Count, Owner, Pace, Reason, Value
from tidegate.model.plans import Plan, Step

STEPS_MAX = 16
RULES_MAX = 64  # of rules, of events and of ranges: the loop's state has to fit into one message
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,47}$(?!\n)")]
_Node = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)")]  # as nodes may be named
_Interval = Annotated[float, msgspec.Meta(gt=0, le=INTERVAL_S_MAX)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class StepRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of: ``send_every_s`` (by class; ``*`` is everybody), ``nodes``, ``slices`` (their nodes, by number), and
    ``policy`` and ``options`` (the send-rate algorithm, by its name, and its options; without a name the one that is
    configured)."""

    send_every_s: dict[str, _Interval] = {}
    nodes: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    slices: dict[Annotated[int, msgspec.Meta(ge=0)], _Node] = {}
    policy: str | None = None
    options: dict[str, Any] = {}
    until: str | None = None
    within_s: _Seconds = 30.0

    def __post_init__(self) -> None:
        chooses = self.policy is not None or bool(self.options)
        said = (bool(self.send_every_s), self.nodes is not None, bool(self.slices), chooses)
        if sum(said) != 1:
            raise UserError(
                "a step says one of send_every_s, nodes, slices, and policy with its options: split it into several, "
                "or leave the others out"
            )
        if self.until is not None:
            try:
                Expression(self.until, names(), "until")
            except UserError as error:
                raise UserError(str(error), where="until") from None

    @property
    def algorithm(self) -> Algorithm | None:
        """What it lets the send-rate policy follow."""
        if self.policy is None and not self.options:
            return None
        return Algorithm(name=self.policy or "", options=self.options)

    def step(self) -> Step:
        wanted: dict[str, Value] = {
            f"send-rate/{name}": Pace(interval_s=interval_s) for name, interval_s in self.send_every_s.items()
        }
        if self.nodes is not None:
            wanted["nodes"] = Count(nodes=self.nodes)
        wanted |= {f"slice/{number}": Owner(node=node) for number, node in self.slices.items()}
        if self.algorithm is not None:
            wanted["policy/send-rate"] = self.algorithm
        return Step(wanted=wanted, until=self.until, within_s=self.within_s)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``on``: an event of the same file, or a built-in one."""

    name: Name
    on: Name
    plan: tuple[StepRule, ...]
    stays: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.plan) <= STEPS_MAX:
            raise UserError(f"plan has {len(self.plan)} steps: a plan has 1 to {STEPS_MAX}", where="plan")

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step.step() for step in self.plan)

    def planned(self, number: int, measurements: Mapping[str, float]) -> Plan:
        reason = Reason(
            measurements=dict(measurements),
            rule=f"rule {self.name}: on {self.on}",
            rejected="leave it to the policies: a rule comes before them",
            because=f"the event {self.on} has begun (rule {self.name})",
        )
        return Plan(id=str(number), by=self.name, event=self.on, steps=self.steps, reason=reason, stays=self.stays)


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``ranges``: the bounds between a property's operation ranges, by its name (``head_age_s``,
    ``brokers.connections``); who is in another one than before is reported. ``events`` by their names; ``rules`` in
    order: between two that want something of one resource, the first one's word counts."""

    ranges: dict[str, tuple[float, ...]] = {}
    events: dict[Name, EventRule] = {}
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        """What contradicts itself is said in a sentence, with its place."""
        for key, several in (("ranges", self.ranges), ("events", self.events), ("rules", self.rules)):
            if len(several) > RULES_MAX:
                raise UserError(f"{key} are {len(several)}: at most {RULES_MAX} are followed.", where=key)
        for name, bounds in self.ranges.items():
            try:
                Ranges({name: bounds})
            except UserError as error:
                raise UserError(f"ranges.{error}", where=f"ranges.{name}") from None
        taken = next((name for name in self.events if name in BUILT_IN), None)
        if taken is not None:
            raise UserError(f"events.{taken}: this event is built in: choose another name.", where=f"events.{taken}")
        known = sorted({*self.events, *BUILT_IN})
        titles = [rule.name for rule in self.rules]
        for number, rule in enumerate(self.rules):
            here = f"rules[{number}]"
            if titles.index(rule.name) != number:
                again = f"{here}.name is {rule.name!r} for the second time: give each rule its own."
                raise UserError(again, where=f"{here}.name")
            if rule.on not in known:
                nothing = f"{here}.on names {rule.on!r}, which is no event: choose one of {', '.join(known)}."
                raise UserError(nothing, where=f"{here}.on")

    def looked_at(self) -> Ranges:
        return Ranges(self.ranges)

    def looked_for(self) -> dict[str, Event]:
        return {name: Event(rule) for name, rule in self.events.items()}


class AppliedRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules as they are followed, and the text that says them, for people."""

    text: str
    rules: RuleSet
    name: str  # of the file
    applied_at_s: float
