"""All of the loop that must survive the process, as one frozen value."""

from typing import Any

import msgspec

from tidegate.loop.events import EventState
from tidegate.loop.knowledge import Finding
from tidegate.loop.planner import PlannerState
from tidegate.loop.plans import PlanRun
from tidegate.model.decisions import Proposal
from tidegate.model.notices import Notice


class PolicyMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy knows, as plain values, and what it said of itself last. ``algorithm``: whose state it is, where
    that is not the configured one's."""

    state: dict[str, Any] = {}
    algorithm: str = ""
    finding: Finding = Finding()


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the loop has decided so far. ``pending``: what it proposed and nobody has said yet what came of it;
    ``notices``: what nobody has been told yet."""

    at_s: float = 0.0  # of the last round that decided something
    policies: dict[str, PolicyMemory] = {}
    ranges: dict[str, int] = {}
    events: dict[str, EventState] = {}
    planner: PlannerState = PlannerState()
    runs: tuple[PlanRun, ...] = ()
    fired: tuple[str, ...] = ()  # the rules that have had their plan since their event began
    pending: tuple[Proposal, ...] = ()
    notices: tuple[Notice, ...] = ()
    rules_at_s: float = 0.0  # when the rules were applied that its plans are of
