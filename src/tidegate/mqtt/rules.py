"""Which side may say what, and when: for every state of a session, version and kind of packet.

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


class SessionState(Enum):
    """Of one session: before CONNECT, until the broker's CONNACK, until a DISCONNECT, and after it."""

    OPENING = "opening"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    ENDING = "ending"


class Sender(Enum):
    DEVICE = "device"
    BROKER = "broker"


class Handling(Enum):
    PASS = "pass"  # noqa: S105 - no password
    KEEP = "keep"  # until the broker has answered CONNECT
    IGNORE = "ignore"  # nobody listens any more
    REFUSE = "refuse"  # the connection ends


class Ruling(msgspec.Struct, frozen=True):
    """``reason`` and ``code`` (of MQTT 5) say why a packet is refused."""

    handling: Handling
    reason: str = ""
    code: int = 0


_PASS, _KEEP, _IGNORE = Ruling(Handling.PASS), Ruling(Handling.KEEP), Ruling(Handling.IGNORE)
_REFUSED = {
    Sender.DEVICE: Ruling(Handling.REFUSE, "protocol error", PROTOCOL_ERROR),
    Sender.BROKER: Ruling(Handling.REFUSE, "broken by the broker", PROTOCOL_ERROR),
}
_OF_BOTH = frozenset((PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP))
_OF_DEVICES = _OF_BOTH | {SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT}
_OF_BROKERS = _OF_BOTH | {SUBACK, UNSUBACK, PINGRESP}


def ruling(state: SessionState, sender: Sender, version: int, kind: int, *, authenticates: bool = False) -> Ruling:
    """What becomes of a packet. ``authenticates``: the CONNECT named an authentication method."""
    speaks_auth = authenticates and version == 5
    if sender is Sender.DEVICE:
        found = _of_device(state, kind, speaks_auth)
    else:
        found = _of_broker(state, version, kind, speaks_auth)
    return found or _REFUSED[sender]


def _of_device(state: SessionState, kind: int, speaks_auth: bool) -> Ruling | None:
    if state is SessionState.OPENING:
        return _PASS if kind == CONNECT else None
    if state is SessionState.ENDING:
        return None
    if kind == AUTH:
        return _PASS if speaks_auth else None
    if kind not in _OF_DEVICES:
        return None
    if state is SessionState.CONNECTED:
        return _PASS
    # A device that is being authenticated has to wait with everything else; others need not wait for CONNACK.
    return _KEEP if kind == DISCONNECT or not speaks_auth else None


def _of_broker(state: SessionState, version: int, kind: int, speaks_auth: bool) -> Ruling | None:
    if state is SessionState.ENDING:
        return _IGNORE
    if state is SessionState.OPENING:
        return None
    if kind == AUTH:
        return _PASS if speaks_auth else None
    if state is SessionState.CONNECTING:
        return _PASS if kind == CONNACK else None
    return _PASS if kind in _OF_BROKERS or (kind == DISCONNECT and version == 5) else None


def check_content(packet: Packet, sender: Sender) -> None:
    """What a packet of MQTT 5 may hold from one side only. Which side that is does not show in its bytes."""
    match packet:
        case Publish(properties=held) if sender is Sender.DEVICE and held.identifiers:
            raise protocol_error("subscription identifier from a device")
        case Disconnect(properties=held):
            theirs = properties.SERVER_REFERENCE if sender is Sender.DEVICE else properties.SESSION_EXPIRY
            if theirs in held.values:
                raise protocol_error("property of the other side")
            if sender is Sender.BROKER and packet.code == 0x04:
                raise malformed("code of the other side")
