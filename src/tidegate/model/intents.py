"""Intents: what a policy wants of one resource, before anybody has weighed it against what others want.

A resource is named by its family and, where there are several, its member: ``send-rate/alarm``, ``nodes``, ``slice/5``,
``route/broker-2``, ``policy/send-rate``.
"""

import enum
from typing import Any

import msgspec

from tidegate.model.routes import Broker

EVERYBODY = "*"  # the member of ``send-rate`` for devices of which no class is named


class Priority(enum.IntEnum):
    """Whose word counts where two want something else of the same resource."""

    SAVE = 1
    BALANCE = 2
    MEET_TARGETS = 3
    PROTECT_CHAIN = 4
    PROTECT_DATA = 5

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


class _Value(msgspec.Struct, frozen=True, kw_only=True, tag_field="of"):
    pass


class Pace(_Value, frozen=True, kw_only=True, tag="send-rate"):
    """How often devices of a class send: None as everybody, 0 their default. Event-driven ones have a dead band."""

    interval_s: float | None = None
    dead_band: float = 1.0

    @property
    def holds(self) -> bool:
        return bool(self.interval_s) or self.dead_band > 1

    def shrunk(self, share: float) -> "Pace":
        """As much of it as that."""
        interval_s = None if self.interval_s is None else self.interval_s * share
        return Pace(interval_s=interval_s, dead_band=1.0 + (self.dead_band - 1.0) * share)


class Count(_Value, frozen=True, kw_only=True, tag="nodes"):
    """How many processing nodes run."""

    nodes: int


class Owner(_Value, frozen=True, kw_only=True, tag="slice"):
    """Which processing node works on a slice."""

    node: str


class Listener(_Value, frozen=True, kw_only=True, tag="route"):
    """How a broker may be used by gateways."""

    broker: Broker


class Algorithm(_Value, frozen=True, kw_only=True, tag="policy"):
    """Which algorithm a policy follows, and with which options: without a name the one that the settings name, and
    what is not among the options as they say."""

    name: str = ""
    options: dict[str, Any] = {}


Value = Pace | Count | Owner | Listener | Algorithm


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The values that were measured, the rule that applied to them, and the alternative that was not taken."""

    measurements: dict[str, float] = {}
    rule: str
    rejected: str
    because: str  # the half of a sentence for a person that begins with this word


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    wanted: Value
    priority: Priority
    reason: Reason
    lifetime_s: float = 0.0  # how long it holds if nobody says anything any more; 0: until something else is said

    @property
    def family(self) -> str:
        return self.resource.partition("/")[0]

    @property
    def member(self) -> str:
        return self.resource.partition("/")[2]
