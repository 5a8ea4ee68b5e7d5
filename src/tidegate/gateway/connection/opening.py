"""The first packet of a connection: CONNECT, checked strictly, because everything behind it is trusted more.

Bytes in, and out comes nothing yet, a device that may be routed, or a refusal with the answer it gets, in the words of
its version. The packet itself is kept as it came: a broker that speaks the same version sees exactly what the device
said; only MQTT 3.1 is carried as 3.1.1.
"""

import hashlib

import msgspec

from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import properties, violations
from tidegate.mqtt.connect import Connect, parse_connect, version_of
from tidegate.mqtt.connect_layout import NAMES
from tidegate.mqtt.encoding import encode
from tidegate.mqtt.frames import frame_size, has_wildcard_level
from tidegate.mqtt.kinds import CONNECT, Connack
from tidegate.mqtt.properties import NEVER_EXPIRES, PACKET_BYTES_MAX_UNSAID, RECEIVE_MAX_UNSAID
from tidegate.mqtt.violations import Violation

_PROPERTIES_MAX = 64
# What MQTT 3.1.1 says for it. It has no words for a client that breaks the protocol: that one is only closed.
_CODES_BEFORE_5 = {
    violations.UNSUPPORTED_VERSION: 1,
    violations.CLIENT_ID_INVALID: 2,
    violations.SERVER_UNAVAILABLE: 3,
    violations.QUOTA_EXCEEDED: 3,
    violations.NOT_AUTHORIZED: 5,
}
_OWN_REASONS = ("unknown protocol", "no client identifier", "too many properties")


class ConnectSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What stays known of a CONNECT while its client is connected: not the credentials, but a digest that tells whether
    two connections have the same. What only MQTT 5 says has the value here that silence about it means.
    """

    version: int
    client_id: str
    clean: bool
    keep_alive_s: int
    credentials: bytes
    will_topic: str | None = None
    session_expiry_s: int = 0
    receive_max: int = RECEIVE_MAX_UNSAID
    packet_bytes_max: int = PACKET_BYTES_MAX_UNSAID
    topic_alias_max: int = 0
    wants_problems: bool = True  # reasons and user properties on any packet
    authenticates: bool = False  # by a method of its own, with AUTH packets

    def __repr__(self) -> str:
        return f"ConnectSummary(version={self.version}, client_id={self.client_id!r}, clean={self.clean})"


class Refusal(msgspec.Struct, frozen=True):
    """Why a connection is not taken, in words that are counted, and the bytes that say so to the device."""

    reason: str
    answer: bytes = b""


class Opened(msgspec.Struct, frozen=True):
    """CONNECT is complete: what stays known of it, all that it says, its bytes, and what came behind it."""

    connect: ConnectSummary
    said: Connect
    packet: bytes
    rest: bytes

    def __repr__(self) -> str:
        """Without the bytes: credentials are in them."""
        return f"Opened({self.connect!r}, {len(self.packet)} bytes, {len(self.rest)} more)"


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
        return said if isinstance(said, Refusal) else Opened(_known(said), said, _carried(said, packet), rest)


def _carried(said: Connect, packet: bytes) -> bytes:
    """As brokers are told: not all know MQTT 3.1, and nothing that follows differs in 3.1.1."""
    if said.version != 3:
        return packet
    user = b"" if said.user is None and said.password is not None else said.user
    return encode(msgspec.structs.replace(said, version=4, user=user), 4)


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


def connack_refusing(version: int, code: int) -> bytes:
    """The CONNACK for an MQTT 5 code; empty where the version has no words for it."""
    if version < 5:
        code = _CODES_BEFORE_5.get(code, 0)
    return encode(Connack(session_present=False, code=code), version) if code else b""


def _refuse(body: bytes, code: int, reason: str) -> Refusal:
    """Versions that are still to come are answered as brokers do it: in the words of 3.1.1, so that they fall back."""
    try:
        name, level = version_of(body)
    except Violation:
        return Refusal(reason)
    is_mqtt = name in NAMES.values()
    return Refusal(reason, connack_refusing(level if level <= 5 else 4, code) if is_mqtt else b"")


def _known(said: Connect) -> ConnectSummary:
    said_by_5 = said.properties
    forever_before_5 = said.version < 5 and not said.clean
    return ConnectSummary(
        version=said.version,
        client_id=said.client_id.decode(),
        clean=said.clean,
        keep_alive_s=said.keep_alive_s,
        credentials=_digest(said),
        will_topic=said.will.topic.decode() if said.will is not None else None,
        session_expiry_s=said_by_5.number(properties.SESSION_EXPIRY, NEVER_EXPIRES if forever_before_5 else 0),
        receive_max=said_by_5.number(properties.RECEIVE_MAX, RECEIVE_MAX_UNSAID),
        packet_bytes_max=said_by_5.number(properties.PACKET_BYTES_MAX, PACKET_BYTES_MAX_UNSAID),
        topic_alias_max=said_by_5.number(properties.TOPIC_ALIAS_MAX, 0),
        wants_problems=bool(said_by_5.number(properties.REQUEST_PROBLEM_INFORMATION, 1)),
        authenticates=properties.AUTHENTICATION_METHOD in said_by_5.values,
    )


def _digest(said: Connect) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    method, data = (
        said.properties.values.get(identifier)
        for identifier in (properties.AUTHENTICATION_METHOD, properties.AUTHENTICATION_DATA)
    )
    for field in (said.user, said.password, method, data):
        if isinstance(field, bytes):
            digest.update(b"\1" + len(field).to_bytes(2, "big") + field)
        else:
            digest.update(b"\0")
    return digest.digest()
