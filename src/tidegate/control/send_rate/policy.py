"""The one interface of every send-rate policy: what it sees, what it says, and a state that outlives it.

A policy is a pure step. Its state is a frozen value that JSON can hold, so it stands in the knowledge store and the
next leader goes on where the last one stopped; the simulator runs the same object.
"""

from typing import Generic, Protocol, TypeVar

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The queue and its senders at one moment, as far as sensors can see them."""

    at_s: float
    overload: bool
    waiting: int
    head_age_s: float
    arrival_per_s: float
    departure_per_s: float
    devices: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What each device may send, and why."""

    phase: str
    rate_per_device: float | None  # messages per second; None leaves devices to their default
    capacity_per_s: float | None  # as far as it is known
    rule: str  # the formula with its values
    rejected: str  # the alternative that was not taken, and what speaks against it


State = TypeVar("State", bound=msgspec.Struct)


class SendRatePolicy(Protocol, Generic[State]):
    """``step`` depends on its arguments alone."""

    @property
    def state_type(self) -> type[State]: ...

    def initial(self) -> State: ...

    def step(self, state: State, seen: Seen) -> tuple[State, Verdict]: ...
