"""The client's half of MQTT 3.1.1 without IO: packets are encoded to bytes, bytes are decoded to events.

A device needs little of the protocol: CONNECT, PUBLISH at QoS 0 and 1, SUBSCRIBE at QoS 0, PINGREQ and DISCONNECT go
out; CONNACK, PUBACK, SUBACK, PINGRESP and short messages at QoS 0 come back. Any other packet a broker may send is
skipped without being held in memory. The events depend only on the bytes, never on how the network cut them.
"""

import msgspec

from tidegate.mqtt.connect_layout import encode_connect_body
from tidegate.mqtt.fields import (
    PACKET_ID_MAX,
    TEXT_BYTES_MAX,
    encode_frame,
    encode_length,
    encode_packet_id,
    encode_text,
)
from tidegate.mqtt.frames import frame_size

KEEP_ALIVE_S_MAX = 65_535
# What a device is told is short. Longer packets than this are not for it, and are skipped.
BODY_BYTES_MAX = 4_096

PINGREQ = b"\xc0\x00"
DISCONNECT = b"\xe0\x00"

_CONNECT_FIRST, _SUBSCRIBE_FIRST = 0x10, 0x82
_CONNACK, _PUBLISH, _PUBACK, _SUBACK, _PINGRESP = 2, 3, 4, 9, 13
_RESERVED = (0, 15)
# The shortest and the longest body of each packet that has to be understood.
_LENGTHS = {
    _CONNACK: (2, 2),
    _PUBLISH: (3, BODY_BYTES_MAX),
    _PUBACK: (2, 2),
    _SUBACK: (3, BODY_BYTES_MAX),
    _PINGRESP: (0, 0),
}
_QOS_AND_DUPLICATE = 0x0E
_PUBACK_FIRST, _PUBACK_BYTES = 0x40, 4

_REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it does not accept the client identifier",
    3: "it is not available",
    4: "the user name or password is malformed",
    5: "the user is not authorised",
}


class ConnectionAnswered(msgspec.Struct, frozen=True, gc=False):
    """CONNACK: code 0 accepts, any other refuses."""

    code: int
    session_present: bool

    def refusal(self) -> str | None:
        """Why the broker refused, or None where it accepted."""
        return None if self.code == 0 else _REFUSALS.get(self.code, f"code {self.code}")


class PublishAcknowledged(msgspec.Struct, frozen=True, gc=False):
    """PUBACK: the broker has taken over the message with this packet identifier."""

    packet_id: int


class Subscribed(msgspec.Struct, frozen=True, gc=False):
    """SUBACK: one code per filter asked for, in order; 128 refuses it."""

    packet_id: int
    codes: bytes


class MessageReceived(msgspec.Struct, frozen=True, gc=False):
    """PUBLISH at QoS 0: a message for this client, which nobody expects an answer to."""

    topic: bytes
    payload: bytes


class PingAnswered(msgspec.Struct, frozen=True, gc=False):
    """PINGRESP: the broker is alive."""


class ProtocolViolated(msgspec.Struct, frozen=True, gc=False):
    """The bytes are not MQTT 3.1.1. It is the last event of a decoder: close the connection."""

    reason: str


Event = ConnectionAnswered | PublishAcknowledged | Subscribed | MessageReceived | PingAnswered | ProtocolViolated


def encode_connect(
    client_id: str,
    *,
    user: str | None = None,
    password: str | None = None,
    clean: bool = True,
    keep_alive_s: int = 60,
) -> bytes:
    """CONNECT. MQTT 3.1.1 allows a password only beside a user name."""
    if password is not None and user is None:
        raise ValueError("MQTT 3.1.1 allows a password only beside a user name")
    if not 0 <= keep_alive_s <= KEEP_ALIVE_S_MAX:
        raise ValueError(f"keep_alive_s is {keep_alive_s}: expected 0 to {KEEP_ALIVE_S_MAX}")
    body = encode_connect_body(
        version=4,
        client_id=client_id.encode(),
        clean=clean,
        keep_alive_s=keep_alive_s,
        user=None if user is None else user.encode(),
        password=None if password is None else password.encode(),
    )
    return encode_frame(_CONNECT_FIRST, body)


def encode_publish(
    topic: bytes,
    payload: bytes,
    *,
    packet_id: int | None = None,
    duplicate: bool = False,
    retain: bool = False,
) -> bytes:
    """PUBLISH: at QoS 1 with a packet identifier, at QoS 0 without. The topic comes as UTF-8."""
    topic_length = len(topic)
    if not 0 < topic_length <= TEXT_BYTES_MAX:
        raise ValueError(f"a topic of {topic_length} bytes: expected 1 to {TEXT_BYTES_MAX}")
    if packet_id is None:
        if duplicate:
            raise ValueError("a message at QoS 0 is never sent twice: it cannot be a duplicate")
        head = bytes((0x30 | retain, *encode_length(2 + topic_length + len(payload))))
        return b"%b%b%b%b" % (head, topic_length.to_bytes(2, "big"), topic, payload)
    if not 0 < packet_id <= PACKET_ID_MAX:
        raise ValueError(f"packet identifier {packet_id}: expected 1 to {PACKET_ID_MAX}")
    first = b"\x32" if not (duplicate or retain) else bytes((0x32 | duplicate << 3 | retain,))
    return b"".join(
        (
            first,
            encode_length(4 + topic_length + len(payload)),
            topic_length.to_bytes(2, "big"),
            topic,
            packet_id.to_bytes(2, "big"),
            payload,
        )
    )


def encode_subscribe(topic: str, *, packet_id: int) -> bytes:
    """SUBSCRIBE to one topic filter at QoS 0."""
    return encode_frame(_SUBSCRIBE_FIRST, encode_packet_id(packet_id) + encode_text(topic.encode()) + b"\0")


class Decoder:
    """Bytes in, events out. It never holds more than one packet that it understands, which is a short one."""

    def __init__(self) -> None:
        self._pending = b""
        self._skip = 0
        self._violated = False

    def receive(self, data: bytes) -> list[Event]:
        """The events that these bytes complete. After a violation there are none any more."""
        events: list[Event] = []
        if self._violated:
            return events
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        if self._pending:
            data = self._pending + data
        position, size = 0, len(data)
        while position < size:
            # Nearly all that a publisher receives is PUBACKs: they take the short way.
            if data[position] == _PUBACK_FIRST and size - position >= _PUBACK_BYTES and data[position + 1] == 2:
                events.append(PublishAcknowledged(data[position + 2] << 8 | data[position + 3]))
                position += _PUBACK_BYTES
                continue
            taken = self._take(data, position, events)
            if taken == 0:
                break
            position += taken
        self._pending = b"" if self._violated else data[position:]
        return events

    def _take(self, data: bytes, position: int, events: list[Event]) -> int:
        """Read one packet at the position; how many bytes it took, 0 where more are needed."""
        kind = data[position] >> 4
        if kind in _RESERVED:
            return self._violate(f"packet type {kind} is reserved", events)
        header, size = frame_size(data, position)
        if header <= 0:
            return self._violate("a packet length of more than four bytes", events) if header else 0
        body, end, length = position + header, position + size, size - header
        if _is_skipped(kind, data[position], length):
            self._skip = max(0, end - len(data))
            return min(end, len(data)) - position
        shortest, longest = _LENGTHS[kind]
        flags = 0 if kind == _PUBLISH else data[position] & 0x0F
        if flags or not shortest <= length <= longest:
            return self._violate(f"packet type {kind} with flags {flags} and {length} bytes", events)
        if end > len(data):
            return 0
        event = _event(kind, data[body:end])
        events.append(event)
        self._violated = type(event) is ProtocolViolated
        return 0 if self._violated else end - position

    def _violate(self, reason: str, events: list[Event]) -> int:
        self._violated = True
        events.append(ProtocolViolated(reason))
        return 0


def _is_skipped(kind: int, first: int, length: int) -> bool:
    """Whether a packet is none of this client's business: unknown here, not at QoS 0, or too long to be for it."""
    if kind == _PUBLISH:
        return bool(first & _QOS_AND_DUPLICATE) or length > BODY_BYTES_MAX
    return kind not in _LENGTHS


def _event(kind: int, body: bytes) -> Event:
    """What a whole packet says."""
    if kind == _PUBACK:
        return PublishAcknowledged(body[0] << 8 | body[1])
    if kind == _PUBLISH:
        end = 2 + (body[0] << 8 | body[1])
        if not 2 < end <= len(body):
            return ProtocolViolated(f"a message of {len(body)} bytes with a topic of {end - 2}")
        return MessageReceived(body[2:end], body[end:])
    if kind == _SUBACK:
        return Subscribed(body[0] << 8 | body[1], body[2:])
    if kind == _CONNACK:
        return ConnectionAnswered(code=body[1], session_present=bool(body[0] & 1))
    return PingAnswered()
