"""The one interface of every send-rate policy: what it sees, what it says, and a state that outlives it.

A policy is a pure step. Its state is a frozen value that JSON can hold, so it stands on the control bus and the
next leader goes on where the last one stopped; the simulator runs the same object.
"""

from typing import Generic, Protocol, TypeVar

import msgspec


class ClassSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One class of devices, as far as gateways can see it. ``arrival_per_s`` is None where a gateway has just begun to
    count: that is no zero."""

    name: str
    devices: int
    arrival_per_s: float | None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The queue, its senders and its processing nodes at one moment, as far as sensors can see them.

    ``at_s`` is now, ``measured_at_s`` the moment that everything else describes: monitoring takes its time.
    """

    at_s: float
    measured_at_s: float
    overload: bool
    waiting: int  # in the queue, with what is being processed
    head_age_s: float
    arrival_per_s: float
    departure_per_s: float
    devices: int
    held: int = 0  # accepted from devices and held back by gateways
    nodes_working: int = 1  # processing nodes that work
    nodes_starting: int = 0
    # What one node does per second of work at its limit, and which share of the nodes' time was such work; None where
    # none of it was seen in the window: an idle node proves nothing.
    node_rate_per_s: float | None = None
    busy_share: float = 0.0
    classes: tuple[ClassSeen, ...] = ()
    # The advice in force: what devices keep to once they have heard it; 0 is their default. Shadow mode has none.
    interval_s: float = 0.0
    intervals_s: dict[str, float] = {}
    dead_bands: dict[str, float] = {}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What each device may send, how many processing nodes shall run, and why."""

    phase: str
    rate_per_device: float | None  # messages per second; None leaves devices to their default
    capacity_per_s: float | None  # as far as it is known
    rule: str  # what was applied, with its numbers
    rejected: str  # the alternative that was not taken, and why
    classes: dict[str, float | None] = {}  # messages per second and device of each class that differs
    dead_bands: dict[str, float] = {}  # how much wider event-driven classes report, at least 1
    demand_per_s: float | None = None  # what devices would send if nobody held them, where it is known
    nodes_wanted: int | None = None  # None leaves their number alone


PolicyState = TypeVar("PolicyState", bound=msgspec.Struct)


class SendRatePolicy(Protocol, Generic[PolicyState]):
    """One step per round; the same state and the same view give the same verdict."""

    @property
    def state_type(self) -> type[PolicyState]: ...

    def initial(self) -> PolicyState: ...

    def step(self, state: PolicyState, seen: Seen) -> tuple[PolicyState, Verdict]: ...
