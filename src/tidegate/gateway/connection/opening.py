"""The first packet of a connection: CONNECT, checked strictly, because everything behind it is trusted more.

Bytes in, and out comes nothing yet, a device that may be routed, or a refusal with the answer it gets, in the words of
its version.
"""

import msgspec

from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import properties, violations
from tidegate.mqtt.connect import Connect, parse_connect, version_of
from tidegate.mqtt.connect_layout import NAMES
from tidegate.mqtt.encoding import encode
from tidegate.mqtt.frames import frame_size, has_wildcard_level
from tidegate.mqtt.kinds import CONNECT, Connack
from tidegate.mqtt.properties import EMPTY, Properties
from tidegate.mqtt.violations import Violation

_PROPERTIES_MAX = 64
# What MQTT 3.1.1 says for it. It has no words for a client that breaks the protocol: that one is only closed.
_CODES_BEFORE_5 = {
    violations.UNSUPPORTED_VERSION: 1,
    violations.CLIENT_ID_INVALID: 2,
    violations.SERVER_UNAVAILABLE: 3,
    violations.QUOTA_EXCEEDED: 3,
    violations.BAD_USER_OR_PASSWORD: 4,
    violations.NOT_AUTHORIZED: 5,
}
_OWN_REASONS = ("unknown protocol", "no client identifier", "too many properties")


class Refusal(msgspec.Struct, frozen=True):
    """Why a connection is not taken, in words that are counted, and the bytes that say so to the device."""

    reason: str
    answer: bytes = b""


class Opened(msgspec.Struct, frozen=True):
    """CONNECT is complete: what it says, its bytes, and what came behind it."""

    said: Connect
    packet: bytes
    rest: bytes

    def __repr__(self) -> str:
        """Without the bytes: credentials are in them."""
        return f"Opened({self.said!r}, {len(self.packet)} bytes, {len(self.rest)} more)"


class Opening:
    """Collects the first packet of one connection, never more than ``bytes_max`` and one chunk."""

    def __init__(self, bytes_max: int, properties_max: int = _PROPERTIES_MAX) -> None:
        self._bytes_max = bytes_max
        self._properties_max = properties_max
        self._collected = bytearray()

    def receive(self, chunk: bytes) -> Opened | Refusal | None:
        self._collected += chunk
        data = self._collected
        if not data:
            return None
        header, size = frame_size(data, 0)
        if data[0] != CONNECT or header < 0:
            return Refusal("not MQTT")
        if size > self._bytes_max:
            return _refuse(bytes(data[header:]), violations.PACKET_TOO_LARGE, "CONNECT too large")
        if header == 0 or len(data) < size:
            return None
        packet, rest = bytes(data[:size]), bytes(data[size:])
        data.clear()
        said = _judge(packet[header:], self._properties_max)
        return said if isinstance(said, Refusal) else Opened(said, packet, rest)


def _judge(body: bytes, properties_max: int) -> Connect | Refusal:
    try:
        said = parse_connect(body, properties_max)
    except Violation as violation:
        reason = violation.reason if violation.reason in _OWN_REASONS else "malformed CONNECT"
        return _refuse(body, violation.code, reason)
    if said.will is not None and said.will.topic == ADVICE_TOPIC.encode():
        return _refuse(body, violations.TOPIC_NAME_INVALID, "forged advice")
    if said.will is not None and has_wildcard_level(said.will.topic):
        return _refuse(body, violations.TOPIC_NAME_INVALID, "wildcard as a topic level")
    return said


def connack_refusing(version: int, code: int, sentence: str = "") -> bytes:
    """The CONNACK for an MQTT 5 code; empty where the version has no words for it. Only MQTT 5 can say the sentence."""
    told = EMPTY
    if version < 5:
        code = _CODES_BEFORE_5.get(code, 0)
    elif sentence:
        told = Properties(values={properties.REASON_STRING: sentence.encode()})
    return encode(Connack(session_present=False, code=code, properties=told), version) if code else b""


def _refuse(body: bytes, code: int, reason: str) -> Refusal:
    """Versions that are still to come are answered as brokers do it: in the words of 3.1.1, so that they fall back."""
    try:
        name, level = version_of(body)
    except Violation:
        return Refusal(reason)
    is_mqtt = name in NAMES.values()
    return Refusal(reason, connack_refusing(level if level <= 5 else 4, code) if is_mqtt else b"")
