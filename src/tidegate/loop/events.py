"""Events: what holds of the chain, or of enough members of a group, for long enough.

An expression over properties has to hold for a while without a break; likewise what ends the event. Over a group of
sources (brokers, gateways, nodes, classes, slices) it is asked of each: any of them, all, a number of them; or once, of
the mean of their properties. Where too little is known to say whether it holds, an event stays what it is; and where
nobody could say so for longer than a gap, its duration begins anew.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec

from tidegate.loop.expressions import Expression
from tidegate.loop.knowledge import CHAIN, Knowledge, Properties
from tidegate.loop.monitors import GROUPS, names
from tidegate.model.errors import UserError

OVERLOAD = "overload"  # the controller's setting says what it is
BUILT_IN = frozenset({OVERLOAD})
# So long, or so many usual rounds, nobody need have judged whether it holds: what lies between two peaks is not known.
GAP_S, GAP_ROUNDS = 5.0, 3.0
LOOKED_AT_MAX = 32  # values that a reason names
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]


class EventRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``of``: the chain, or a group of sources, of which ``need`` says how many. ``until``: what ends it, if not that
    ``when`` no longer holds."""

    when: str
    for_s: _Seconds = 0.0
    of: Literal["chain", "brokers", "classes", "gateways", "nodes", "slices"] = "chain"
    need: Literal["any", "all", "mean"] | Annotated[int, msgspec.Meta(ge=1)] = "any"
    until: str | None = None
    until_for_s: _Seconds = 0.0

    def __post_init__(self) -> None:
        if self.of == CHAIN and self.need not in ("any", 1):
            alone = f"need is {self.need!r}, and there is one chain: leave it out, or say of whom"
            raise UserError(alone, where="need")
        self.read("when", self.when)
        if self.until is not None:
            self.read("until", self.until)

    def read(self, key: str, text: str) -> Expression:
        """An expression over what is known of what it is asked of. A mistake in it is told with its key."""
        try:
            return Expression(text, names(GROUPS.get(self.of, self.of)), key)
        except UserError as error:
            raise UserError(str(error), where=key) from None


class EventState(msgspec.Struct, frozen=True, kw_only=True):
    """``since_s``: since when it holds that the event should change from what it is, ``seen_s``: when that was seen
    last; None while it does not hold."""

    active: bool = False
    since_s: float | None = None
    seen_s: float | None = None

    def held_since_s(self, knowledge: Knowledge) -> float:
        """Since when it holds without a break, where it holds now. Where the clock was set back, that is now."""
        at_s, gap_s = knowledge.measured_at_s, max(GAP_S, GAP_ROUNDS * knowledge.round_s)
        if self.since_s is None or self.seen_s is None or at_s - self.seen_s > gap_s:
            return at_s
        return min(self.since_s, at_s)


class Event:
    """A rule with its expressions read."""

    def __init__(self, rule: EventRule) -> None:
        self._kind, self._need = GROUPS.get(rule.of, rule.of), rule.need
        self._when = rule.read("when", rule.when)
        self._until = None if rule.until is None else rule.read("until", rule.until)
        self._for_s, self._until_for_s = rule.for_s, rule.until_for_s

    def step(self, state: EventState, knowledge: Knowledge) -> EventState:
        changes, wait_s = (
            (self._ends(knowledge), self._until_for_s)
            if state.active
            else (self._holds(self._when, knowledge), self._for_s)
        )
        if changes is None:
            return state
        if not changes:
            return EventState(active=state.active)
        at_s = knowledge.measured_at_s
        since_s = state.held_since_s(knowledge)
        if at_s - since_s >= wait_s:
            return EventState(active=not state.active)
        return EventState(active=state.active, since_s=since_s, seen_s=at_s)

    def looked_at(self, knowledge: Knowledge) -> Properties:
        """What it goes by, of every member of its group, by source and name; of the chain that is known anyway."""
        if self._kind == CHAIN:
            return {}
        found = {
            f"{self._kind}/{source}.{name}": seen[name]
            for source, seen in sorted(knowledge.group(self._kind).items())
            for name in sorted(self._when.names & seen.keys())
        }
        return dict(list(found.items())[:LOOKED_AT_MAX])

    def _ends(self, knowledge: Knowledge) -> bool | None:
        if self._until is not None:
            return self._holds(self._until, knowledge)
        holds = self._holds(self._when, knowledge)
        return None if holds is None else not holds

    def _holds(self, expression: Expression, knowledge: Knowledge) -> bool | None:
        if self._kind == CHAIN:
            return expression.holds(knowledge.chain)
        sources = knowledge.group(self._kind).values()
        if not sources:
            return None  # nobody is there who could be asked
        if self._need == "mean":
            return expression.holds(_mean(sources))
        answers = [expression.holds(found) for found in sources]
        needed = {"any": 1, "all": max(1, len(answers))}.get(str(self._need), self._need)
        assert isinstance(needed, int)
        certain, open_ = answers.count(True), answers.count(None)
        if certain >= needed:
            return True
        return None if certain + open_ >= needed else False


def overload(when: str, for_s: float, place: str, until: str | None = None) -> Event:
    """The built-in one. ``place`` is where its expression stands, for who made a mistake in it."""
    Expression(when, names(), place)
    if until is not None:
        Expression(until, names(), f"{place}_until")
    return Event(EventRule(when=when, for_s=for_s, until=until))


def _mean(sources: Iterable[Properties]) -> Mapping[str, float]:
    """Of each property, over the sources that have it."""
    found: dict[str, list[float]] = {}
    for source in sources:
        for name, value in source.items():
            found.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}
