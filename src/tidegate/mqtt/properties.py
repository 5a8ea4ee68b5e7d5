"""The properties of MQTT 5 packets: read strictly, kept by their identifiers, written back."""

import msgspec

from tidegate.mqtt.fields import encode_length, encode_text, take_binary, take_length, take_number, take_text
from tidegate.mqtt.names import check_topic
from tidegate.mqtt.violations import (
    QUOTA_EXCEEDED,
    TOPIC_ALIAS_INVALID,
    TOPIC_NAME_INVALID,
    Violation,
    malformed,
    protocol_error,
)

PAYLOAD_FORMAT, MESSAGE_EXPIRY, CONTENT_TYPE = 0x01, 0x02, 0x03
RESPONSE_TOPIC, CORRELATION_DATA, SUBSCRIPTION_IDENTIFIER = 0x08, 0x09, 0x0B
SESSION_EXPIRY, ASSIGNED_CLIENT_ID, SERVER_KEEP_ALIVE = 0x11, 0x12, 0x13
AUTHENTICATION_METHOD, AUTHENTICATION_DATA = 0x15, 0x16
REQUEST_PROBLEM_INFORMATION, WILL_DELAY, REQUEST_RESPONSE_INFORMATION = 0x17, 0x18, 0x19
RESPONSE_INFORMATION, SERVER_REFERENCE, REASON_STRING = 0x1A, 0x1C, 0x1F
RECEIVE_MAX, TOPIC_ALIAS_MAX, TOPIC_ALIAS = 0x21, 0x22, 0x23
QOS_MAX, RETAIN_AVAILABLE, USER_PROPERTY, PACKET_BYTES_MAX = 0x24, 0x25, 0x26, 0x27
WILDCARDS_AVAILABLE, SUBSCRIPTION_IDENTIFIERS_AVAILABLE, SHARED_AVAILABLE = 0x28, 0x29, 0x2A

# What it means to say nothing about them.
RECEIVE_MAX_UNSAID = 65_535
PACKET_BYTES_MAX_UNSAID = 268_435_460  # what MQTT can write at all
NEVER_EXPIRES = 0xFFFF_FFFF  # as a session expiry

_BYTES, _TEXTS = 0, -1
# How a value is written: so many bytes of a number, a field of bytes, or a text.
_FORMS = {
    **dict.fromkeys((PAYLOAD_FORMAT, REQUEST_PROBLEM_INFORMATION, REQUEST_RESPONSE_INFORMATION, QOS_MAX), 1),
    **dict.fromkeys((RETAIN_AVAILABLE, WILDCARDS_AVAILABLE, SUBSCRIPTION_IDENTIFIERS_AVAILABLE, SHARED_AVAILABLE), 1),
    **dict.fromkeys((SERVER_KEEP_ALIVE, RECEIVE_MAX, TOPIC_ALIAS_MAX, TOPIC_ALIAS), 2),
    **dict.fromkeys((MESSAGE_EXPIRY, SESSION_EXPIRY, WILL_DELAY, PACKET_BYTES_MAX), 4),
    **dict.fromkeys((CORRELATION_DATA, AUTHENTICATION_DATA), _BYTES),
    **dict.fromkeys((CONTENT_TYPE, RESPONSE_TOPIC, ASSIGNED_CLIENT_ID, AUTHENTICATION_METHOD), _TEXTS),
    **dict.fromkeys((RESPONSE_INFORMATION, SERVER_REFERENCE, REASON_STRING), _TEXTS),
}
_NEVER_ZERO = (RECEIVE_MAX, PACKET_BYTES_MAX)

_OF_MESSAGES = {PAYLOAD_FORMAT, MESSAGE_EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA, USER_PROPERTY}
_AUTHENTICATION = {AUTHENTICATION_METHOD, AUTHENTICATION_DATA}
IN_PUBLISH = frozenset({*_OF_MESSAGES, TOPIC_ALIAS, SUBSCRIPTION_IDENTIFIER})
IN_WILL = frozenset({*_OF_MESSAGES, WILL_DELAY})
IN_ACKNOWLEDGEMENT = frozenset({REASON_STRING, USER_PROPERTY})
IN_SUBSCRIBE = frozenset({SUBSCRIPTION_IDENTIFIER, USER_PROPERTY})
IN_UNSUBSCRIBE = frozenset({USER_PROPERTY})
IN_DISCONNECT = frozenset({SESSION_EXPIRY, SERVER_REFERENCE, *IN_ACKNOWLEDGEMENT})
IN_AUTH = frozenset({*_AUTHENTICATION, *IN_ACKNOWLEDGEMENT})
IN_CONNECT = frozenset(
    {SESSION_EXPIRY, RECEIVE_MAX, PACKET_BYTES_MAX, TOPIC_ALIAS_MAX, USER_PROPERTY, *_AUTHENTICATION}
    | {REQUEST_RESPONSE_INFORMATION, REQUEST_PROBLEM_INFORMATION}
)
IN_CONNACK = frozenset(
    {SESSION_EXPIRY, RECEIVE_MAX, QOS_MAX, RETAIN_AVAILABLE, PACKET_BYTES_MAX, ASSIGNED_CLIENT_ID, TOPIC_ALIAS_MAX}
    | {WILDCARDS_AVAILABLE, SUBSCRIPTION_IDENTIFIERS_AVAILABLE, SHARED_AVAILABLE, SERVER_KEEP_ALIVE}
    | {RESPONSE_INFORMATION, SERVER_REFERENCE, *_AUTHENTICATION, *IN_ACKNOWLEDGEMENT}
)


class Properties(msgspec.Struct, frozen=True, kw_only=True):
    """``user`` properties keep their order, and those that may stand only once are in ``values``."""

    values: dict[int, int | bytes] = {}
    user: tuple[tuple[bytes, bytes], ...] = ()
    identifiers: tuple[int, ...] = ()  # of subscriptions

    def number(self, identifier: int, default: int) -> int:
        value = self.values.get(identifier, default)
        assert isinstance(value, int)
        return value

    def optional_number(self, identifier: int) -> int | None:
        value = self.values.get(identifier)
        return value if isinstance(value, int) else None

    def __repr__(self) -> str:
        """Never a value: a credential may be among them."""
        names = ", ".join(f"0x{identifier:02x}" for identifier in self.values)
        return f"Properties([{names}], {len(self.user)} user, {len(self.identifiers)} identifiers)"


EMPTY = Properties()


def parse_properties(data: bytes, place: int, allowed: frozenset[int], count_max: int) -> tuple[Properties, int]:
    """The properties at a place, with their length before them, and the place behind them."""
    length, place = take_length(data, place)
    if length == 0:
        return EMPTY, place
    end = place + length
    if end > len(data):
        raise malformed("malformed properties")
    part, place, count = data[place:end], 0, 0
    values: dict[int, int | bytes] = {}
    user: list[tuple[bytes, bytes]] = []
    identifiers: list[int] = []
    while place < length:
        count += 1
        if count > count_max:
            raise Violation(QUOTA_EXCEEDED, "too many properties")
        identifier = part[place]
        place += 1
        if identifier not in allowed:
            raise malformed("property not allowed")
        if identifier == USER_PROPERTY:
            name, place = take_text(part, place)
            text, place = take_text(part, place)
            user.append((name, text))
        elif identifier == SUBSCRIPTION_IDENTIFIER:
            number, place = take_length(part, place)
            identifiers.append(number)
        elif identifier in values:
            raise protocol_error("property twice")
        else:
            values[identifier], place = _take_value(part, place, identifier)
    if 0 in identifiers:
        raise protocol_error("property out of range")
    return Properties(values=values, user=tuple(user), identifiers=tuple(identifiers)), end


def encode_properties(properties: Properties) -> bytes:
    """With their length before them."""
    if properties is EMPTY:
        return b"\0"
    parts = []
    for identifier, value in properties.values.items():
        parts.append(bytes((identifier,)))
        parts.append(value.to_bytes(_FORMS[identifier], "big") if isinstance(value, int) else encode_text(value))
    for name, text in properties.user:
        parts += (bytes((USER_PROPERTY,)), encode_text(name), encode_text(text))
    for number in properties.identifiers:
        parts += (bytes((SUBSCRIPTION_IDENTIFIER,)), encode_length(number))
    body = b"".join(parts)
    return encode_length(len(body)) + body


def encode_properties_of(properties: Properties, version: int) -> bytes:
    """Nothing before MQTT 5, which was the first to have any."""
    return encode_properties(properties) if version == 5 else b""


def _take_value(data: bytes, place: int, identifier: int) -> tuple[int | bytes, int]:
    form = _FORMS[identifier]
    if form == _BYTES:
        return take_binary(data, place)
    if form == _TEXTS:
        text, place = take_text(data, place)
        if identifier == RESPONSE_TOPIC:
            _check_response_topic(text)
        return text, place
    number, place = take_number(data, place, form)
    if number == 0 and identifier == TOPIC_ALIAS:
        raise Violation(TOPIC_ALIAS_INVALID, "topic alias invalid")
    if (form == 1 and number > 1) or (number == 0 and identifier in _NEVER_ZERO):
        raise protocol_error("property out of range")
    return number, place


def _check_response_topic(topic: bytes) -> None:
    """It is no topic that the packet is published on: a wildcard there is an error of the protocol."""
    try:
        check_topic(topic)
    except Violation as violation:
        if violation.code != TOPIC_NAME_INVALID:
            raise
        raise protocol_error(str(violation)) from None
