"""The first packet of a connection: CONNECT, checked strictly, because everything behind it is trusted more.

Bytes in, and out comes nothing yet, a device that may be routed, or a refusal with the answer it gets. The packet
itself is kept as it came: a broker sees exactly what the device said.
"""

import hashlib

import msgspec

from tidegate.gateway.mqtt.frames import frame_size
from tidegate.gateway.mqtt.packets import CONNACK_V5_UNSUPPORTED, text_at
from tidegate.model.advice import ADVICE_TOPIC

CONNECT = 0x10
_VERSIONS = {(b"MQIsdp", 3), (b"MQTT", 4)}
_CLEAN, _WILL, _WILL_QOS, _WILL_RETAIN, _PASSWORD, _USER = 0x02, 0x04, 0x18, 0x20, 0x40, 0x80


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to connect. ``credentials`` is a digest: it tells whether two connections say the same password."""

    client_id: str
    clean: bool
    keep_alive_s: int
    credentials: bytes
    will_topic: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why a connection is not taken, in words that are counted, and the bytes that say so to the device."""

    reason: str
    answer: bytes = b""


_MALFORMED = Refusal("malformed CONNECT")


class Opened(msgspec.Struct, frozen=True):
    """CONNECT is complete: what it says, its bytes, and what came behind it in the same chunk."""

    connect: Connect
    packet: bytes
    rest: bytes


class Opening:
    """Collects the first packet of one connection, never more than ``bytes_max`` and one chunk."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._collected = bytearray()

    def receive(self, chunk: bytes) -> Opened | Refusal | None:
        self._collected += chunk
        data = self._collected
        if data[0] != CONNECT:
            return Refusal("not MQTT")
        header, size = frame_size(data, 0)
        if header < 0:
            return Refusal("not MQTT")
        if size > self._bytes_max:
            return Refusal("CONNECT too large")
        if header == 0 or len(data) < size:
            return None
        packet = bytes(data[:size])
        connect = parse_connect(packet[header:])
        return connect if isinstance(connect, Refusal) else Opened(connect, packet, bytes(data[size:]))


def parse_connect(body: bytes) -> Connect | Refusal:
    """The body of a CONNECT of MQTT 3.1 or 3.1.1; MQTT 5 is recognised and refused in its own words."""
    name = text_at(body, 0)
    if name is None or len(body) < 2 + len(name) + 4:
        return _MALFORMED
    place = 2 + len(name)
    level, flags = body[place], body[place + 1]
    if (name, level) not in _VERSIONS:
        is_v5 = (name, level) == (b"MQTT", 5)
        return Refusal("MQTT 5 is not spoken", CONNACK_V5_UNSUPPORTED) if is_v5 else Refusal("unknown protocol")
    fields = _fields(body, place + 4, flags) if _are_valid(flags, level) else None
    if fields is None:
        return _MALFORMED
    return _connect(fields, flags, keep_alive_s=body[place + 2] << 8 | body[place + 3])


def _connect(fields: list[bytes], flags: int, *, keep_alive_s: int) -> Connect | Refusal:
    try:
        client_id = fields[0].decode()
        will_topic = fields[1].decode() if flags & _WILL else None
    except UnicodeDecodeError:
        return _MALFORMED
    if will_topic == ADVICE_TOPIC:
        return Refusal("forged advice")
    return Connect(
        client_id=client_id,
        clean=bool(flags & _CLEAN),
        keep_alive_s=keep_alive_s,
        credentials=_digest(fields[3 if flags & _WILL else 1 :]),
        will_topic=will_topic,
    )


def _are_valid(flags: int, level: int) -> bool:
    """Bits that contradict each other. MQTT 3.1 says nothing about the lowest bit or a lone password."""
    if not flags & _WILL:
        if flags & (_WILL_QOS | _WILL_RETAIN):
            return False
    elif flags & _WILL_QOS == _WILL_QOS:
        return False
    return level == 3 or not (flags & 0x01 or (flags & _PASSWORD and not flags & _USER))


def _fields(body: bytes, place: int, flags: int) -> list[bytes] | None:
    """Client identifier, will topic, will message, user name, password: those the flags announce, and no byte more."""
    wanted = 1 + 2 * bool(flags & _WILL) + bool(flags & _USER) + bool(flags & _PASSWORD)
    fields: list[bytes] = []
    for _ in range(wanted):
        field = text_at(body, place)
        if field is None:
            return None
        fields.append(field)
        place += 2 + len(field)
    return fields if place == len(body) else None


def _digest(fields: list[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for field in fields:
        digest.update(len(field).to_bytes(2, "big") + field)
    return digest.digest()
