"""MQTT packets, bytes to values: every kind of 3.1, 3.1.1 and 5, as strictly as the standard has it."""

from collections.abc import Callable

from tidegate.mqtt.connect import parse_connect
from tidegate.mqtt.fields import take_packet_id, take_text, text_at
from tidegate.mqtt.kinds import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PACKET_KINDS,
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
    Ack,
    Auth,
    Connack,
    Disconnect,
    Packet,
    Ping,
    Pong,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from tidegate.mqtt.names import check_filter, check_topic, is_shared
from tidegate.mqtt.properties import (
    AUTHENTICATION_METHOD,
    EMPTY,
    IN_ACKNOWLEDGEMENT,
    IN_AUTH,
    IN_CONNACK,
    IN_DISCONNECT,
    IN_PUBLISH,
    IN_SUBSCRIBE,
    IN_UNSUBSCRIBE,
    TOPIC_ALIAS,
    Properties,
    parse_properties,
)
from tidegate.mqtt.violations import malformed, protocol_error

_FLAGGED = (PUBREL, SUBSCRIBE, UNSUBSCRIBE)
_FLAG, _DUPLICATE = 0x02, 0x08
_CODES_OF_RECEIVING = frozenset((0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99))
_CODES_OF_RELEASING = frozenset((0x00, 0x92))
_CODES = {
    PUBACK: _CODES_OF_RECEIVING,
    PUBREC: _CODES_OF_RECEIVING,
    PUBREL: _CODES_OF_RELEASING,
    PUBCOMP: _CODES_OF_RELEASING,
    SUBACK: frozenset((0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2)),
    UNSUBACK: frozenset((0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91)),
    CONNACK: frozenset((0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F)),
    DISCONNECT: frozenset((0, 4, *range(0x80, 0x84), 0x87, 0x89, *range(0x8B, 0x91), *range(0x93, 0xA3))),
    AUTH: frozenset((0x00, 0x18, 0x19)),
}
_SUBACK_CODES_BEFORE_5 = frozenset((0, 1, 2, 0x80))
_CONNACK_CODE_MAX_BEFORE_5 = 5


def parse(first: int, body: bytes, version: int, *, properties_max: int) -> Packet:
    """The packet with this first byte and body, in the words of the connection's version. CONNECT says its own."""
    if first & 0xF0 == PUBLISH:
        return _parse_publish(first, body, version, properties_max)
    _check_flags(first, version)
    return _PARSERS[first & 0xF0](first & 0xF0, body, version, properties_max)


def _parse_publish(first: int, body: bytes, version: int, properties_max: int) -> Publish:
    qos, duplicate = first >> 1 & 0x03, bool(first & _DUPLICATE)
    if qos == 3:
        raise malformed("QoS 3")
    if duplicate and qos == 0 and version > 3:
        raise malformed("bad flags")
    topic = text_at(body, 0)
    if topic is None:
        raise malformed()
    place, packet_id, properties = 2 + len(topic), 0, EMPTY
    if qos:
        packet_id, place = take_packet_id(body, place)
    if version == 5:
        properties, place = parse_properties(body, place, IN_PUBLISH, properties_max)
    if topic or TOPIC_ALIAS not in properties.values:
        check_topic(topic)
    return Publish(
        topic=topic,
        payload=body[place:],
        qos=qos,
        retain=bool(first & 0x01),
        duplicate=duplicate,
        packet_id=packet_id,
        properties=properties,
    )


def _parse_ack(kind: int, body: bytes, version: int, properties_max: int) -> Ack:
    packet_id, place = take_packet_id(body, 0)
    code, properties = _parse_tail(kind, body, place, version, properties_max)
    return Ack(kind=kind, packet_id=packet_id, code=code, properties=properties)


def _parse_disconnect(kind: int, body: bytes, version: int, properties_max: int) -> Disconnect:
    code, properties = _parse_tail(kind, body, 0, version, properties_max)
    return Disconnect(code=code, properties=properties)


def _parse_tail(kind: int, body: bytes, place: int, version: int, properties_max: int) -> tuple[int, Properties]:
    """The code and the properties that may both be left out, and are before MQTT 5."""
    code, properties = 0, EMPTY
    if version == 5 and place < len(body):
        code = body[place]
        _check_codes(kind, body[place : place + 1])
        place += 1
        if place < len(body):
            allowed = IN_DISCONNECT if kind == DISCONNECT else IN_ACKNOWLEDGEMENT
            properties, place = parse_properties(body, place, allowed, properties_max)
    _check_end(body, place)
    return code, properties


def _parse_subscribe(_: int, body: bytes, version: int, properties_max: int) -> Subscribe:
    packet_id, place = take_packet_id(body, 0, malformed)
    properties = EMPTY
    if version == 5:
        properties, place = parse_properties(body, place, IN_SUBSCRIBE, properties_max)
        if len(properties.identifiers) > 1:
            raise protocol_error("property twice")
    entries = []
    while place < len(body):
        topic_filter, place = take_text(body, place)
        check_filter(topic_filter, version)
        if place == len(body):
            raise malformed()
        _check_options(body[place], topic_filter, version)
        entries.append((topic_filter, body[place]))
        place += 1
    if not entries:
        raise protocol_error("no topic filter")
    return Subscribe(packet_id=packet_id, entries=tuple(entries), properties=properties)


def _parse_unsubscribe(_: int, body: bytes, version: int, properties_max: int) -> Unsubscribe:
    packet_id, place = take_packet_id(body, 0, malformed)
    properties = EMPTY
    if version == 5:
        properties, place = parse_properties(body, place, IN_UNSUBSCRIBE, properties_max)
    filters = []
    while place < len(body):
        topic_filter, place = take_text(body, place)
        check_filter(topic_filter, version)
        filters.append(topic_filter)
    if not filters:
        raise protocol_error("no topic filter")
    return Unsubscribe(packet_id=packet_id, filters=tuple(filters), properties=properties)


def _parse_answer(kind: int, body: bytes, version: int, properties_max: int) -> Suback | Unsuback:
    packet_id, place = take_packet_id(body, 0)
    properties = EMPTY
    if version == 5:
        properties, place = parse_properties(body, place, IN_ACKNOWLEDGEMENT, properties_max)
    codes = body[place:]
    if kind == UNSUBACK and version < 5:
        _check_end(body, place)
        return Unsuback(packet_id=packet_id)
    if not codes:
        raise malformed()
    if version < 5 and not _SUBACK_CODES_BEFORE_5.issuperset(codes):
        raise malformed("bad code")
    _check_codes(kind, codes)
    return (Suback if kind == SUBACK else Unsuback)(packet_id=packet_id, codes=codes, properties=properties)


def _parse_connack(_: int, body: bytes, version: int, properties_max: int) -> Connack:
    if len(body) < 2:
        raise malformed()
    flags, code, place, properties = body[0], body[1], 2, EMPTY
    if version == 5:
        _check_codes(CONNACK, body[1:2])
        properties, place = parse_properties(body, place, IN_CONNACK, properties_max)
    elif code > _CONNACK_CODE_MAX_BEFORE_5:
        raise malformed("bad code")
    _check_end(body, place)
    if version == 3:
        flags = 0  # reserved there, and not to be looked at
    if flags > 1 or (flags and code):
        raise malformed("bad flags")
    return Connack(session_present=bool(flags), code=code, properties=properties)


def _parse_auth(_: int, body: bytes, __: int, properties_max: int) -> Auth:
    if not body:
        return Auth()
    _check_codes(AUTH, body[:1])
    properties, place = parse_properties(body, 1, IN_AUTH, properties_max)
    _check_end(body, place)
    if AUTHENTICATION_METHOD not in properties.values:
        raise protocol_error("no authentication method")
    return Auth(code=body[0], properties=properties)


def _parse_ping(kind: int, body: bytes, _: int, __: int) -> Ping | Pong:
    _check_end(body, 0)
    return Ping() if kind == PINGREQ else Pong()


def _check_flags(first: int, version: int) -> None:
    """The low four bits of the first byte. In MQTT 3.1 what is sent again may say so."""
    kind, flags = first & 0xF0, first & 0x0F
    if kind not in PACKET_KINDS:
        raise protocol_error("reserved packet type")
    if kind == AUTH and version < 5:
        raise malformed("reserved packet type")
    if version == 3 and kind in _FLAGGED:
        flags &= ~_DUPLICATE
    if flags != (_FLAG if kind in _FLAGGED else 0):
        raise malformed("bad flags")


def _check_options(options: int, topic_filter: bytes, version: int) -> None:
    """QoS, and in MQTT 5 no-local (bit 2), retain as published (bit 3) and retain handling (bits 4 and 5)."""
    if options & (0xC0 if version == 5 else 0xFC):
        raise malformed("bad subscription options")
    if options & 0x03 == 3 or options & 0x30 == 0x30:
        raise protocol_error("bad subscription options")
    if options & 0x04 and is_shared(topic_filter):
        raise protocol_error("bad subscription options")


def _check_codes(kind: int, codes: bytes) -> None:
    if not _CODES[kind].issuperset(codes):
        raise protocol_error("bad code")


def _check_end(body: bytes, place: int) -> None:
    if place != len(body):
        raise malformed()


_PARSERS: dict[int, Callable[[int, bytes, int, int], Packet]] = {
    CONNECT: lambda _, body, __, properties_max: parse_connect(body, properties_max),
    CONNACK: _parse_connack,
    **dict.fromkeys((PUBACK, PUBREC, PUBREL, PUBCOMP), _parse_ack),
    SUBSCRIBE: _parse_subscribe,
    UNSUBSCRIBE: _parse_unsubscribe,
    **dict.fromkeys((SUBACK, UNSUBACK), _parse_answer),
    **dict.fromkeys((PINGREQ, PINGRESP), _parse_ping),
    DISCONNECT: _parse_disconnect,
    AUTH: _parse_auth,
}
