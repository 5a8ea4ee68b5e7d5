"""What a connection's machine wants done: all of it is its shell's to do, and none of it is done in here.

What is asked for is answered by one call of the machine, whenever the answer is there; each says by which.
"""

from enum import Enum, auto

import msgspec

from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.model.routes import Broker
from tidegate.mqtt.connect import Connect


class Do(Enum):
    """What needs no further word."""

    PAUSE_DEVICE = auto()
    RESUME_DEVICE = auto()
    PAUSE_BROKER = auto()
    RESUME_BROKER = auto()
    CLOSE_DEVICE = auto()  # when all that was written has gone out
    CLOSE_BROKER = auto()
    ABORT_BROKER = auto()
    END_WRITING = auto()  # to the broker: it reads to the end, and may still answer
    AWAIT_TURN = auto()  # until this client may be connected: ``turned``
    LEAVE_LINE = auto()  # it does not want to be connected any more
    DIAL = auto()  # the broker that was chosen: ``reached`` or ``not_reached``
    FLOW = auto()  # bytes pass now: the event loop may hand them to the session itself
    FORGET = auto()  # nothing is left of the device


class ToDevice(msgspec.Struct, frozen=True, gc=False):
    data: bytes


class ToBroker(msgspec.Struct, frozen=True, gc=False):
    data: bytes


class Judge(msgspec.Struct, frozen=True, gc=False):
    """Who says this, and what may it do? ``judged``."""

    said: Connect


class MakeWay(msgspec.Struct, frozen=True, gc=False):
    """End what is left of the client's connection before. ``way_made``, with what is known of the client."""

    connect: ConnectSummary


class Choose(msgspec.Struct, frozen=True, gc=False):
    """A broker that was not tried yet: ``chosen``."""

    tried: frozenset[str]


class DeleteSession(msgspec.Struct, frozen=True, gc=False):
    """Send this CONNECT on a connection of its own, and leave. ``asked``."""

    broker: Broker
    packet: bytes


class AskOthers(msgspec.Struct, frozen=True, gc=False):
    """Has any of these brokers answered anybody since then? ``told``."""

    brokers: tuple[Broker, ...]
    since_s: float


class TurnEnds(msgspec.Struct, frozen=True, gc=False):
    """A broker answered the client whose turn it was, or none did and it waits for another."""

    took_s: float
    ok: bool


class WakeAt(msgspec.Struct, frozen=True, gc=False):
    """Call ``woken`` then, in place of what was said before; None: never."""

    at_s: float | None


class Learn5(msgspec.Struct, frozen=True, gc=False):
    """Whether a broker knows MQTT 5."""

    broker: Broker
    speaks: bool


Instruction = (
    Do | ToDevice | ToBroker | Judge | MakeWay | Choose | DeleteSession | AskOthers | TurnEnds | WakeAt | Learn5
)
