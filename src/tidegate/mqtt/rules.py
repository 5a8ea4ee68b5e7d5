"""Who may say what, and when: for every state of a session, side, version and kind of packet.

The standard as one table. The frame scanner and the session act on it in their own, quicker ways, and are tested
against it.
"""

from enum import Enum

import msgspec

from tidegate.mqtt import properties
from tidegate.mqtt.kinds import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    Disconnect,
    Packet,
    Publish,
)
from tidegate.mqtt.violations import PROTOCOL_ERROR, malformed, protocol_error


class State(Enum):
    """Of one session: before CONNECT, until the broker's CONNACK, until a DISCONNECT, and after it."""

    OPENING = "opening"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    ENDING = "ending"


class Side(Enum):
    DEVICE = "device"
    BROKER = "broker"


class Action(Enum):
    PASS = "pass"  # noqa: S105 - no password
    KEEP = "keep"  # until the broker has answered CONNECT
    IGNORE = "ignore"  # nobody listens any more
    REFUSE = "refuse"  # the connection ends


class Verdict(msgspec.Struct, frozen=True):
    """``reason`` and ``code`` (of MQTT 5) say why a packet is refused."""

    action: Action
    reason: str = ""
    code: int = 0


_PASS, _KEEP, _IGNORE = Verdict(Action.PASS), Verdict(Action.KEEP), Verdict(Action.IGNORE)
_REFUSED = {
    Side.DEVICE: Verdict(Action.REFUSE, "protocol error", PROTOCOL_ERROR),
    Side.BROKER: Verdict(Action.REFUSE, "broken by the broker", PROTOCOL_ERROR),
}
_OF_BOTH = frozenset((PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP))
_OF_DEVICES = _OF_BOTH | {SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT}
_OF_BROKERS = _OF_BOTH | {SUBACK, UNSUBACK, PINGRESP}


def verdict(state: State, side: Side, version: int, kind: int, *, authenticates: bool = False) -> Verdict:
    """What becomes of a packet. ``authenticates``: the CONNECT named an authentication method."""
    speaks_auth = authenticates and version == 5
    if side is Side.DEVICE:
        found = _of_device(state, kind, speaks_auth)
    else:
        found = _of_broker(state, version, kind, speaks_auth)
    return found or _REFUSED[side]


def _of_device(state: State, kind: int, speaks_auth: bool) -> Verdict | None:
    if state is State.OPENING:
        return _PASS if kind == CONNECT else None
    if state is State.ENDING:
        return None
    if kind == AUTH:
        return _PASS if speaks_auth else None
    if kind not in _OF_DEVICES:
        return None
    if state is State.CONNECTED:
        return _PASS
    # Who is being authenticated has to wait with everything else; others need not wait for CONNACK.
    return _KEEP if kind == DISCONNECT or not speaks_auth else None


def _of_broker(state: State, version: int, kind: int, speaks_auth: bool) -> Verdict | None:
    if state is State.ENDING:
        return _IGNORE
    if state is State.OPENING:
        return None
    if kind == AUTH:
        return _PASS if speaks_auth else None
    if state is State.CONNECTING:
        return _PASS if kind == CONNACK else None
    return _PASS if kind in _OF_BROKERS or (kind == DISCONNECT and version == 5) else None


def check_content(packet: Packet, side: Side) -> None:
    """What a packet of MQTT 5 may hold from one side only. Which side it is does not show in its bytes."""
    match packet:
        case Publish(properties=held) if side is Side.DEVICE and held.identifiers:
            raise protocol_error("subscription identifier from a device")
        case Disconnect(properties=held):
            theirs = properties.SERVER_REFERENCE if side is Side.DEVICE else properties.SESSION_EXPIRY
            if theirs in held.values:
                raise protocol_error("property of the other side")
            if side is Side.BROKER and packet.code == 0x04:
                raise malformed("code of the other side")
