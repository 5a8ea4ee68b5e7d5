"""What packets there are: the number of each kind, and its content as a value. Topics, filters and texts are bytes."""

import msgspec

from tidegate.mqtt.connect import Connect
from tidegate.mqtt.properties import EMPTY, Properties

CONNECT, CONNACK, PUBLISH = 0x10, 0x20, 0x30
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x60, 0x70
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = 0x80, 0x90, 0xA0, 0xB0
PINGREQ, PINGRESP, DISCONNECT, AUTH = 0xC0, 0xD0, 0xE0, 0xF0
PACKET_KINDS = range(CONNECT, AUTH + 1, 0x10)


class Publish(msgspec.Struct, frozen=True, kw_only=True):
    """``packet_id`` is 0 at QoS 0; an empty topic stands for the one of the alias."""

    topic: bytes
    payload: bytes
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    packet_id: int = 0
    properties: Properties = EMPTY


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    kind: int
    packet_id: int
    code: int = 0
    properties: Properties = EMPTY


class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    """``entries`` are (topic filter, options byte)."""

    packet_id: int
    entries: tuple[tuple[bytes, int], ...]
    properties: Properties = EMPTY


class Suback(msgspec.Struct, frozen=True, kw_only=True):
    packet_id: int
    codes: bytes
    properties: Properties = EMPTY


class Unsubscribe(msgspec.Struct, frozen=True, kw_only=True):
    packet_id: int
    filters: tuple[bytes, ...]
    properties: Properties = EMPTY


class Unsuback(msgspec.Struct, frozen=True, kw_only=True):
    """Before MQTT 5 it has no codes."""

    packet_id: int
    codes: bytes = b""
    properties: Properties = EMPTY


class Connack(msgspec.Struct, frozen=True, kw_only=True):
    session_present: bool
    code: int
    properties: Properties = EMPTY


class Disconnect(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 0
    properties: Properties = EMPTY


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 0
    properties: Properties = EMPTY


class Ping(msgspec.Struct, frozen=True):
    """PINGREQ."""


class Pong(msgspec.Struct, frozen=True):
    """PINGRESP."""


Packet = (
    Connect | Connack | Publish | Ack | Subscribe | Suback | Unsubscribe | Unsuback | Ping | Pong | Disconnect | Auth
)
