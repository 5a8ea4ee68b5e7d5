"""From a verdict to actions: what is new, what is only a renewal, and what may be carried out.

Advice is a lease. While it holds devices back it is renewed at a third of its lifetime, and a renewal is no decision; a
change is one. A change of the interval by less than 2 % is neither.
"""

from collections.abc import Mapping

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.slicing.spreading import slices_to_move, stayers
from tidegate.loop import sentences
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.decisions import Action, Plan, Reason
from tidegate.model.observations import NodeState

SAME_SHARE = 0.02
# A device hears the next advice with its next message: a lease that is shorter than its interval lapses in between.
LIFETIME_INTERVALS = 3.0
# What was asked for and did not come is asked for again after this time; slices only for so long after a change.
REPEATED_S = 10.0
SETTLED_S = 60.0


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A plan for the shell. ``acts``: carry it out. ``recorded``: it is a decision, write it down."""

    plan: Plan
    acts: bool
    recorded: bool
    sentence: str
    phase: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The last advice: what it said, whether devices were really told, when it was decided and last renewed."""

    interval_s: float = 0.0
    classes: dict[str, float] = {}
    dead_bands: dict[str, float] = {}
    lifetime_s: float = 0.0
    acted: bool = False
    decided_at_s: float = 0.0
    renewed_at_s: float = 0.0

    def _is_in_force(self, at_s: float) -> bool:
        return self.acted and at_s < self.renewed_at_s + self.lifetime_s

    def kept_to(self, at_s: float) -> "Given":
        """What devices keep to now: this, or nothing."""
        return self if self._is_in_force(at_s) else Given()

    def in_force(self, at_s: float) -> float:
        """The interval that devices keep to now; 0 where they keep their default."""
        return self.kept_to(at_s).interval_s

    @property
    def holds_anybody(self) -> bool:
        return self.interval_s > 0 or any(self.classes.values()) or any(band > 1 for band in self.dead_bands.values())


def advise(
    given: Given, seen: Seen, verdict: Verdict, measurements: dict[str, float], lifetime_s: float, *, acts: bool
) -> tuple[Given, Proposal | None]:
    """The next advice, if it is due."""
    wanted = Given(
        interval_s=_interval(verdict.rate_per_device),
        classes={name: _interval(rate) for name, rate in verdict.classes.items()},
        dead_bands=verdict.dead_bands,
    )
    known = given if given.acted == acts else given.kept_to(seen.at_s)
    if _is_same(known, wanted):
        if not acts or given.acted is not acts or not _renewal_due(given, seen.at_s):
            return given, None
        renewed = msgspec.structs.replace(given, renewed_at_s=seen.at_s)
        return renewed, _proposal(renewed, seen, verdict, measurements, recorded=False)
    longest_s = max(wanted.interval_s, *wanted.classes.values(), 0.0)
    lifetime_s = max(lifetime_s, LIFETIME_INTERVALS * longest_s)
    if not wanted.holds_anybody:
        # Somebody may have heard the advice before it just now, and will not ask again sooner.
        lifetime_s = max(lifetime_s, given.lifetime_s)
    given = msgspec.structs.replace(
        wanted,
        lifetime_s=min(lifetime_s, INTERVAL_S_MAX),
        acted=acts,
        decided_at_s=seen.at_s,
        renewed_at_s=seen.at_s,
    )
    return given, _proposal(given, seen, verdict, measurements, recorded=True)


def _interval(rate: float | None) -> float:
    return 0.0 if rate is None else min(1.0 / rate, INTERVAL_S_MAX)


def _is_same(before: Given, after: Given) -> bool:
    return (
        _is_near(before.interval_s, after.interval_s)
        and _are_near(before.classes, after.classes, before.interval_s, after.interval_s)
        and _are_near(before.dead_bands, after.dead_bands, 1.0, 1.0)
    )


def _are_near(before: Mapping[str, float], after: Mapping[str, float], before_else: float, after_else: float) -> bool:
    return all(
        _is_near(before.get(name, before_else), after.get(name, after_else)) for name in before.keys() | after.keys()
    )


def _is_near(before: float, after: float) -> bool:
    if before == 0 or after == 0:
        return before == after
    return abs(after - before) < SAME_SHARE * before


def _renewal_due(given: Given, at_s: float) -> bool:
    """A withdrawal is repeated for one lifetime; after that no lease of the advice before it can be left."""
    if not given.holds_anybody and at_s >= given.decided_at_s + given.lifetime_s:
        return False
    if at_s < given.renewed_at_s:  # the clock went back: nobody knows how long ago that was
        return True
    return at_s >= given.renewed_at_s + given.lifetime_s / 3


def _proposal(
    given: Given, seen: Seen, verdict: Verdict, measurements: dict[str, float], *, recorded: bool
) -> Proposal:
    action = Action(
        kind="advise",
        arguments={
            "interval_s": given.interval_s,
            "lifetime_s": given.lifetime_s,
            "classes": given.classes,
            "dead_bands": given.dead_bands,
        },
        reason=Reason(measurements=measurements, rule=verdict.rule, rejected=verdict.rejected),
    )
    return Proposal(
        plan=Plan(event="overload" if seen.overload else "overload resolved", actions=(action,)),
        acts=given.acted,
        recorded=recorded,
        sentence=sentences.advised(given.interval_s, given.classes, seen, verdict),
        phase=verdict.phase,
    )


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """How many processing nodes were asked for, when, and whether anybody was really asked; None: nobody scales."""

    nodes_wanted: int | None = None
    at_s: float = 0.0
    acted: bool = False

    @property
    def in_force(self) -> int | None:
        return self.nodes_wanted if self.acted else None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The processing nodes that slices were last spread over, since when, and when that was last tried."""

    over: tuple[str, ...] = ()
    since_s: float = 0.0
    tried_s: float = 0.0


def scale(
    scaled: Scaled, seen: Seen, verdict: Verdict, measurements: dict[str, float], *, acts: bool
) -> tuple[Scaled, Proposal | None]:
    """Another number of processing nodes, where the policy wants one, and again where it was asked for in vain."""
    wanted = verdict.nodes_wanted
    if wanted is None:
        return scaled, None
    running = seen.nodes_working + seen.nodes_starting
    known = scaled.nodes_wanted if scaled.nodes_wanted is not None and scaled.acted == acts else running
    in_vain = acts and running < wanted and not 0 <= seen.at_s - scaled.at_s < REPEATED_S
    if wanted == known and not in_vain:
        return msgspec.structs.replace(scaled, nodes_wanted=wanted, acted=acts), None
    action = Action(
        kind="scale",
        arguments={"nodes_wanted": wanted},
        reason=Reason(measurements=measurements, rule=verdict.rule, rejected=verdict.rejected),
    )
    return Scaled(nodes_wanted=wanted, at_s=seen.at_s, acted=acts), Proposal(
        plan=Plan(event="demand changed", actions=(action,)),
        acts=acts,
        recorded=wanted != known,
        sentence=sentences.scaled(wanted, running, seen, verdict),
        phase=verdict.phase,
    )


def spread(
    before: Spread, nodes: tuple[NodeState, ...], scaled: int | None, at_s: float
) -> tuple[Spread, dict[int, str]]:
    """Which slices go where. They follow the processing nodes once per change of these, and what did not get there is
    sent again for a while; after that, what an operator moved by hand stays where it is."""
    held = {node.name: node.slices for node in nodes if node.is_working}
    staying = stayers(held, len(held) if scaled is None else max(1, scaled))
    if not any(held.values()):
        return before, {}
    changed = staying != before.over
    recent = at_s - before.since_s <= SETTLED_S and at_s - before.tried_s >= REPEATED_S
    if not changed and not recent:
        return before, {}
    since_s = at_s if changed else before.since_s
    moves = {move.slice: move.taker for move in slices_to_move(held, staying)}
    return Spread(over=staying, since_s=since_s, tried_s=at_s), moves


def move(moves: Mapping[int, str], nodes: tuple[NodeState, ...], phase: str) -> Proposal | None:
    if not moves:
        return None
    reason = Reason(
        measurements={
            "nodes": float(sum(node.alive for node in nodes)),
            "ready": float(sum(node.is_working for node in nodes)),
        },
        rule="every node that stays has as many slices as the others, or one more",
        rejected="leave the slices where they are: a node without slices does nothing",
    )
    action = Action(kind="move", arguments={"takers": {str(slice_): to for slice_, to in moves.items()}}, reason=reason)
    return Proposal(
        plan=Plan(event="processing nodes changed", actions=(action,)),
        acts=True,
        recorded=True,
        sentence=sentences.moved(moves),
        phase=phase,
    )
