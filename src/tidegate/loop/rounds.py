"""A round as the audit keeps it: all that its decisions looked at, so that they can be made again and compared."""

from typing import Any

import msgspec

from tidegate.loop.knowledge import Knowledge
from tidegate.loop.machine import ControlLoop
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.decisions import Decision, Mode, Proposal


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """``state`` is the loop's before the round, ``settings`` what the loop was built from, as plain values."""

    at_s: float
    knowledge: Knowledge
    state: LoopState
    mode: Mode
    settings: dict[str, Any] = {}
    rules: RuleSet = RuleSet()
    rules_at_s: float = 0.0
    knows_rules: bool = True  # whether the rules could be read


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What comes out of a round when it is played again, for one of its decisions."""

    equal: bool
    again: Proposal | None  # None where nothing is decided about it
    differs: tuple[str, ...] = ()  # in which of its parts


def replay(loop: ControlLoop, played: Round, decision: Decision) -> Replay:
    """Play a round again with a loop of the same settings, and compare what it says with what was decided then."""
    loop.follow(played.rules, played.rules_at_s)
    loop.knows_rules = played.knows_rules
    loop.resume(played.state)
    planned = loop.decide(played.knowledge, played.mode)
    again = next((one for one in planned.proposals if one.plan == decision.plan), None)
    if again is None:
        return Replay(equal=False, again=None, differs=("it is not decided",))
    parts = ("by", "phase", "action", "reason", "sentence", "expects")
    differs = tuple(part for part in parts if getattr(again, part) != getattr(decision, part))
    return Replay(equal=not differs, again=again, differs=differs)
