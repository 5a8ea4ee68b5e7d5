"""The few packets that the gateway itself reads or writes. All others pass it by as bytes."""

from collections.abc import Sequence

import msgspec

from tidegate.devices.mqtt import encode_length

PUBLISH, PUBACK, PUBCOMP = 0x30, 0x40, 0x70
CONNACK = 0x20
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = 0x80, 0x90, 0xA0, 0xB0
PINGRESP = 0xD0

CONNACK_UNAVAILABLE = b"\x20\x02\x00\x03"
# MQTT 5: no session, reason 0x84 "unsupported protocol version", no properties.
CONNACK_V5_UNSUPPORTED = b"\x20\x03\x00\x84\x00"


class Filters(msgspec.Struct, frozen=True):
    """A SUBSCRIBE or an UNSUBSCRIBE. ``entries`` are (topic filter, the bytes that stand for it in the packet)."""

    packet_id: bytes
    entries: tuple[tuple[bytes, bytes], ...]


def text_at(data: bytes, position: int) -> bytes | None:
    """A text or a binary field with its two bytes of length before it; None where it does not fit the data."""
    start = position + 2
    if start > len(data):
        return None
    end = start + (data[position] << 8 | data[position + 1])
    return data[start:end] if end <= len(data) else None


def parse_filters(first: int, body: bytes) -> Filters | None:
    """A SUBSCRIBE or UNSUBSCRIBE; None where the packet breaks the protocol."""
    option = 1 if first & 0xF0 == SUBSCRIBE else 0
    entries = []
    place = 2
    while place < len(body):
        topic = text_at(body, place)
        end = place + 2 + len(topic) + option if topic is not None else 0
        if not topic or end > len(body) or (option and body[end - 1] > 2):
            return None
        entries.append((topic, body[place:end]))
        place = end
    return Filters(body[:2], tuple(entries)) if entries and first & 0x0F == 0x02 else None


def encode_filters(first: int, packet_id: bytes, entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    return encode(first, packet_id + b"".join(entry for _, entry in entries))


def encode_suback(packet_id: bytes, codes: bytes) -> bytes:
    return encode(SUBACK, packet_id + codes)


def encode_unsuback(packet_id: bytes) -> bytes:
    return encode(UNSUBACK, packet_id)


def encode(first: int, body: bytes) -> bytes:
    return bytes((first,)) + encode_length(len(body)) + body
