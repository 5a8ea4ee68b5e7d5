"""What gateways can say about one client, and all that is known of it."""

import msgspec

from tidegate.model.limits import LimitMet
from tidegate.model.registration import Entry

# Who wants to know asks here, on the control bus, with a name; every process that has such a client answers.
CLIENTS_SUBJECT = "tidegate.clients"


class ClientState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection of a client. ``held`` publishes wait; ``limit`` is what for."""

    gateway: str
    client_id: str  # as the broker knows it
    address: str
    broker: str
    version: str  # of MQTT
    method: str  # by which it proved who it is
    credits_left: float
    subscriptions: int
    held: int = 0
    held_s: float = 0.0
    limit: LimitMet | None = None
    rate_per_s: float | None = None  # that is enforced
    expires_s: float | None = None  # Unix time: when its proof ends


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Why a client was refused, or its connection ended, the last time that this happened."""

    reason: str  # in the words that are counted
    at_s: float  # Unix time
    address: str


class ClientAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one process says about a name."""

    gateway: str
    connections: tuple[ClientState, ...] = ()
    ended: Ended | None = None


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one device: what is kept of its name, and what every process says that has seen it."""

    name: str
    entry: Entry
    answers: tuple[ClientAnswer, ...] = ()
