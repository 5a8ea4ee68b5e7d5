"""CONNECT: who a client is, what it leaves behind, and how it wants to talk. MQTT 3.1, 3.1.1 and 5."""

import msgspec

from tidegate.mqtt.connect_layout import (
    BRIDGE,
    CLEAN,
    NAMES,
    PASSWORD,
    RESERVED,
    USER,
    WILL,
    WILL_QOS,
    WILL_QOS_SHIFT,
    WILL_RETAIN,
    encode_connect_body,
)
from tidegate.mqtt.fields import encode_text, take_binary, take_number, take_text
from tidegate.mqtt.names import check_topic
from tidegate.mqtt.properties import (
    AUTHENTICATION_DATA,
    AUTHENTICATION_METHOD,
    EMPTY,
    IN_CONNECT,
    IN_WILL,
    Properties,
    encode_properties_of,
    parse_properties,
)
from tidegate.mqtt.violations import (
    CLIENT_ID_INVALID,
    UNSUPPORTED_VERSION,
    Violation,
    malformed,
    protocol_error,
)


class Will(msgspec.Struct, frozen=True, kw_only=True):
    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = EMPTY

    def __repr__(self) -> str:
        return f"Will({self.topic!r}, {len(self.payload)} bytes, qos={self.qos}, retain={self.retain})"


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """``clean`` is Clean Start in MQTT 5."""

    version: int
    client_id: bytes
    clean: bool
    keep_alive_s: int
    will: Will | None = None
    user: bytes | None = None
    password: bytes | None = None
    properties: Properties = EMPTY
    is_bridge: bool = False  # another broker, which says so in a bit of the version

    def __repr__(self) -> str:
        """Without credentials: what is printed is kept somewhere."""
        return (
            f"Connect(version={self.version}, client_id={self.client_id!r}, clean={self.clean}, "
            f"keep_alive_s={self.keep_alive_s}, will={self.will!r}, {self.properties!r})"
        )


def version_of(body: bytes) -> tuple[bytes, int]:
    """(protocol name, level) as the first bytes of a CONNECT have them."""
    name, place = take_binary(body, 0)
    level, _ = take_number(body, place, 1)
    return name, level


def parse_connect(body: bytes, properties_max: int) -> Connect:
    name, level = version_of(body)
    version = level & ~BRIDGE if level in (3 | BRIDGE, 4 | BRIDGE) else level
    if NAMES.get(version) != name:
        raise Violation(UNSUPPORTED_VERSION, "unknown protocol")
    place = 2 + len(name) + 1
    flags, place = take_number(body, place, 1)
    _check_flags(flags, version)
    keep_alive_s, place = take_number(body, place, 2)
    properties, place = _properties(body, place, version, IN_CONNECT, properties_max)
    if AUTHENTICATION_DATA in properties.values and AUTHENTICATION_METHOD not in properties.values:
        raise protocol_error("authentication data without a method")
    client_id, place = take_text(body, place)
    clean = bool(flags & CLEAN)
    if not client_id and (version == 3 or (version == 4 and not clean)):
        raise Violation(CLIENT_ID_INVALID, "no client identifier")
    will, user, password = None, None, None
    if flags & WILL:
        will, place = _parse_will(body, place, flags, version, properties_max)
    if flags & USER:
        user, place = take_text(body, place)
    if flags & PASSWORD:
        password, place = take_binary(body, place)
    if place != len(body):
        raise malformed()
    return Connect(
        version=version,
        client_id=client_id,
        clean=clean,
        keep_alive_s=keep_alive_s,
        will=will,
        user=user,
        password=password,
        properties=properties,
        is_bridge=level != version,
    )


def encode_connect(connect: Connect) -> bytes:
    """The body of the packet."""
    will, version = connect.will, connect.version
    will_flags, will_fields = 0, b""
    if will is not None:
        will_flags = WILL | will.qos << WILL_QOS_SHIFT | WILL_RETAIN * will.retain
        will_fields = (
            encode_properties_of(will.properties, version) + encode_text(will.topic) + encode_text(will.payload)
        )
    return encode_connect_body(
        version=version,
        client_id=connect.client_id,
        clean=connect.clean,
        keep_alive_s=connect.keep_alive_s,
        user=connect.user,
        password=connect.password,
        properties=encode_properties_of(connect.properties, version),
        will_flags=will_flags,
        will=will_fields,
        is_bridge=connect.is_bridge,
    )


def _check_flags(flags: int, version: int) -> None:
    """Bits that contradict each other. MQTT 3.1 says nothing about the lowest bit or a lone password, 5 allows that."""
    if flags & WILL_QOS == WILL_QOS or (flags & (WILL_QOS | WILL_RETAIN) and not flags & WILL):
        raise malformed("bad flags")
    if version > 3 and flags & RESERVED:
        raise malformed("bad flags")
    if version == 4 and flags & PASSWORD and not flags & USER:
        raise malformed("bad flags")


def _parse_will(body: bytes, place: int, flags: int, version: int, properties_max: int) -> tuple[Will, int]:
    properties, place = _properties(body, place, version, IN_WILL, properties_max)
    topic, place = take_text(body, place)
    check_topic(topic)
    payload, place = take_binary(body, place)
    will = Will(
        topic=topic,
        payload=payload,
        qos=(flags & WILL_QOS) >> WILL_QOS_SHIFT,
        retain=bool(flags & WILL_RETAIN),
        properties=properties,
    )
    return will, place


def _properties(
    body: bytes, place: int, version: int, allowed: frozenset[int], count_max: int
) -> tuple[Properties, int]:
    return parse_properties(body, place, allowed, count_max) if version == 5 else (EMPTY, place)
