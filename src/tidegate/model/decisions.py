"""Decisions: what is done, by whose word, and why. Nothing acts without a reason, and every reason is kept."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

import msgspec

from tidegate.model.actions import Action
from tidegate.model.effects import Effect
from tidegate.model.errors import UserError
from tidegate.model.intents import Reason

ModeWord = Literal["acting", "cohort", "shadow", "off"]
MODES: tuple[ModeWord, ...] = get_args(ModeWord)
POLICIES = ("send_rate", "nodes", "slices", "routes")


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """By policy. ``acting``: it is obeyed; ``cohort``: it is obeyed by a share of devices, slices and brokers, always
    the same ones, and by one node at a time; ``shadow``: what it wants is only written down; ``off``: it is not
    asked."""

    send_rate: ModeWord = "acting"
    nodes: ModeWord = "acting"
    slices: ModeWord = "acting"
    routes: ModeWord = "acting"
    cohort_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    frozen: bool = False  # stops all acting at once, whatever the rest says

    def with_changes(self, changes: Mapping[str, object]) -> "Mode":
        """The same but for these fields; a value that one cannot have is refused."""
        for said in (changes[name] for name in POLICIES if name in changes):
            if said not in MODES:
                raise UserError(f"There is no mode {said!r}: choose one of {', '.join(MODES)}.")
        try:
            return msgspec.convert({**msgspec.to_builtins(self), **changes}, Mode)
        except msgspec.ValidationError as error:
            raise UserError(f"The mode cannot be changed so ({error}).") from None

    def of(self, family: str) -> ModeWord:
        """The mode of a family of resources."""
        return {
            "send-rate": self.send_rate,
            "nodes": self.nodes,
            "slice": self.slices,
            "route": self.routes,
            "policy": self.send_rate,  # the one policy that has several algorithms
        }[family]


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's word for one round: what is wanted now is carried out, where its policy is in shadow mode.
    ``once`` tells one such word from the next, and is the name of its answer."""

    once: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]{1,64}$(?!\n)")]

    def mode(self, mode: Mode) -> Mode:
        """The same, for this round."""
        lifted = {name: "acting" for name in POLICIES if getattr(mode, name) == "shadow"}
        return msgspec.structs.replace(mode, **lifted)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The leader's answer to one such word: which decisions came of it. What became of each is in the audit."""

    plans: tuple[str, ...] = ()
    measured: bool = True  # whether anything could be decided at all


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """An action for whoever carries it out. ``acts``: do so. ``recorded``: it is a decision, write it down."""

    at_s: float  # when it was decided, by the loop's own time
    plan: str  # the plan that it belongs to
    round: str  # the round in which it was decided
    by: str  # the policy, or the rule, whose word it is
    phase: str = ""
    events: tuple[str, ...] = ()  # that were under way
    action: Action
    reason: Reason
    sentence: str  # what is done and why, for a person
    expects: Effect | None = None
    acts: bool = True
    recorded: bool = True


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log: what was decided, by which controller, when, and whether it was really carried out."""

    at_s: float
    controller: str
    plan: str
    round: str  # the audit has what that round looked at
    by: str
    phase: str
    sentence: str
    acted: bool
    trouble: str = ""  # why it could not be carried out
    action: Action
    reason: Reason
    expects: Effect | None = None  # what came of it is told as a notice

    @property
    def not_done(self) -> str:
        """In words: that it was not carried out, or what is known of it; empty where it was."""
        if self.acted:
            return ""
        return f"not done by {self.controller}: {self.trouble}" if self.trouble else "not carried out"
