"""Scenarios and strategies as values: what a YAML file says, and what experiments build in code."""

import itertools
from typing import Annotated, Any

import msgspec

from tidegate.devices.pattern import Pattern
from tidegate.loop.rules import RuleSet
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.classes import ClassName, DeviceClass
from tidegate.model.errors import UserError

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Noise = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e7)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
NodeCount = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
_Interval = Annotated[float, msgspec.Meta(ge=0.001, le=INTERVAL_S_MAX)]
DevicePoint = tuple[Seconds, Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]]
CapacityPoint = tuple[Seconds, Annotated[float, msgspec.Meta(ge=0, le=1e6)]]


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One class of devices: how many there are when, and how they behave.

    ``pattern`` is text like ``0:100,10:100,14:800`` or the same points as a list: seconds and devices, linear between.
    A class without one exists in recordings alone.
    """

    name: ClassName
    pattern: str | tuple[DevicePoint, ...] | None = None
    default_interval_s: _Interval = 0.5
    weight: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    cost: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0  # service time of a message against one of cost 1
    cost_known: bool = True  # whether policies are told the cost, or have to learn it
    never_delay: bool = False
    event_driven: bool = False
    # An event-driven device whose dead band is d times as wide sends d ** elasticity times as seldom; 2 is a random
    # walk's.
    elasticity: Annotated[float, msgspec.Meta(ge=0, le=10)] = 2.0
    deaf_share: Share = 0.0  # of its devices ask for no advice

    def __post_init__(self) -> None:
        self.devices()

    def devices(self) -> Pattern:
        """The number of devices over time."""
        match self.pattern:
            case None:
                return Pattern(((0.0, 0),))
            case str():
                return Pattern.parse(self.pattern)
        points = tuple((float(at_s), int(count)) for at_s, count in self.pattern)
        if not points:
            raise UserError(f"Class {self.name} has an empty pattern: write points like [[0, 100], [10, 800]].")
        if any(later[0] < earlier[0] for earlier, later in itertools.pairwise(points)):
            raise UserError(f"The pattern of class {self.name} goes back in time: let seconds grow.")
        return Pattern(points)

    def device_class(self) -> DeviceClass:
        """What an operator would tell the controller about this class."""
        return DeviceClass(
            name=self.name,
            weight=self.weight,
            never_delay=self.never_delay,
            event_driven=self.event_driven,
            default_interval_s=self.default_interval_s,
            cost=self.cost if self.cost_known else None,
        )


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What processes messages: a first-in-first-out queue and nodes that take one message at a time.

    ``capacity`` has points of second and factor: from that second on, every node works at so many times its rate.
    """

    rate_per_s: Positive  # of one node, in messages of cost 1
    noise: Noise = 0.0  # a service time is uniform within this share of its mean, either way
    nodes_at_start: NodeCount = 1
    nodes_min: NodeCount = 1
    nodes_max: NodeCount = 1
    start_s: Seconds = 0.0  # from the wish for a node to its first message
    capacity: tuple[CapacityPoint, ...] = ()
    # All nodes call one external service for every message: a single server, so a limit that no scaling lifts.
    external_cap_per_s: Positive | None = None

    def __post_init__(self) -> None:
        if not self.nodes_min <= self.nodes_at_start <= self.nodes_max:
            raise UserError(
                f"The service starts with {self.nodes_at_start} nodes, and nodes_min is {self.nodes_min}, "
                f"nodes_max {self.nodes_max}: choose a number between them."
            )
        if any(later[0] < earlier[0] for earlier, later in itertools.pairwise(self.capacity)):
            raise UserError("The service's capacity goes back in time: let seconds grow.")


class Monitoring(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the controller gets to know: every ``period_s``, ``delay_s`` later, and wrong by about ``noise``."""

    period_s: Annotated[float, msgspec.Meta(ge=0.01, le=3600)] = 1.0
    delay_s: Seconds = 0.0
    noise: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0


class Enforcement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the gateway does about devices that do not keep to the advice. Without ``enforce`` it lets them."""

    enforce: bool = False
    window: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8  # messages of a device that are not acknowledged yet
    hold_s_max: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Recorded arrivals: a CSV or Parquet file with a column of seconds, and perhaps the class and the device.

    With devices, each sends what was recorded of it no faster than the interval in force, and combines the rest;
    without, or where ``controllable`` is false, messages arrive when they did.
    """

    file: str
    seconds_column: str = "at_s"
    class_column: str = "class"
    device_column: str = "device"
    controllable: bool = True


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A world without a policy. ``default_interval_s`` is what policies are told of devices in general; None is that of
    the class with the most devices."""

    name: str
    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e7)]
    classes: tuple[Load, ...]
    service: Service
    monitoring: Monitoring = Monitoring()
    gateway: Enforcement = Enforcement()
    replay: Replay | None = None
    acknowledgement_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0  # from a message to the advice behind it
    default_interval_s: _Interval | None = None
    window_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 3.0
    advice_lifetime_s: Annotated[float, msgspec.Meta(gt=0, le=INTERVAL_S_MAX)] = 10.0
    advice_half_life_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 10.0

    def __post_init__(self) -> None:
        if not self.classes:
            raise UserError(f"Scenario {self.name} has no classes: name at least one, with a pattern.")
        names = [load.name for load in self.classes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(f"Scenario {self.name} has two classes named {twice}: give each its own name.")
        if self.window_s < self.monitoring.period_s:
            raise UserError(
                f"Scenario {self.name} has a window of {self.window_s:g} s, shorter than the monitoring's period "
                f"({self.monitoring.period_s:g} s): a rate needs two measurements; lengthen it."
            )

    @property
    def told_interval_s(self) -> float:
        """The default interval that policies are told."""
        if self.default_interval_s is not None:
            return self.default_interval_s
        return max(self.classes, key=lambda load: load.devices().devices_max).default_interval_s


class Strategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is tried in a scenario: a policy by its registered name or as ``module:Class``, and its options."""

    policy: str
    name: str = ""  # as it appears in tables and plots; empty is the policy's name
    options: dict[str, Any] = {}
    overload: str = "waiting > 1"
    overload_for_s: Seconds = 0.0
    nodes_at_start: NodeCount | None = None  # to start with, in place of the scenario's number
    rules: RuleSet = RuleSet()  # as in a rule file

    @property
    def title(self) -> str:
        return self.name or self.policy
