"""The one interface of every policy of the loop: what is known goes in; what it wants, and its own state, come out.

A policy is a pure step. Its state is a frozen value that JSON can hold, so it stands on the control bus and the next
leader goes on where the last one stopped; the simulator runs the same object.
"""

from typing import Generic, Protocol, TypeVar

import msgspec

from tidegate.loop.knowledge import Finding, Knowledge
from tidegate.model.intents import Intent

State = TypeVar("State", bound=msgspec.Struct)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """``intents`` are all that it wants: what it no longer names it does not want any more."""

    intents: tuple[Intent, ...] = ()
    finding: Finding = Finding(phase="")


class Policy(Protocol, Generic[State]):
    """``families`` are those that it speaks for, and nobody else does; ``serves`` those whose policies build on what
    it finds: it is asked for their sake, too."""

    @property
    def name(self) -> str: ...

    @property
    def families(self) -> tuple[str, ...]: ...

    @property
    def serves(self) -> tuple[str, ...]: ...

    @property
    def state_type(self) -> type[State]: ...

    def initial(self) -> State: ...

    def step(self, state: State, knowledge: Knowledge) -> tuple[State, Judgement | None]:
        """None: too little is known to say anything, and what is in force stays as it is."""
        ...
