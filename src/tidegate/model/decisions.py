"""Plans: what a policy wants done, and why. Nothing acts without a reason, and every reason is kept."""

from typing import Any

import msgspec

SEND_RATE_MODES = ("acting", "shadow", "off")


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The values that were measured, the rule that applied to them, and the alternative that was not taken.

    The audit log keeps decisions of earlier versions, which had their measurements under another name; they are read
    without them.
    """

    measurements: dict[str, float] = {}
    rule: str
    rejected: str


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One thing for one executor: ``kind`` names the executor, ``arguments`` are its own."""

    kind: str
    arguments: dict[str, Any]
    reason: Reason


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Ordered actions. ``event`` says what made the plan necessary."""

    event: str
    actions: tuple[Action, ...] = ()


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """``acting``: plans are carried out; ``shadow``: they are made and written down; ``off``: none are made."""

    send_rate: str = "acting"
    frozen: bool = False  # stops all acting at once, whatever the rest says


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log: an action, who took it, when, and whether it was really carried out."""

    at_s: float
    controller: str
    phase: str
    sentence: str  # what was done and why, for a person
    acted: bool
    action: Action
