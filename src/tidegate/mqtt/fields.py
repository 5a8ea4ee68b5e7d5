"""The fields that MQTT packets are made of: numbers, texts and lengths, each read strictly at a place in the bytes."""

from collections.abc import Callable

from tidegate.mqtt.frames import variable_length
from tidegate.mqtt.violations import Violation, malformed, protocol_error

TEXT_BYTES_MAX = 65_535
LENGTH_MAX = 268_435_455
PACKET_ID_MAX = 65_535


def text_at(data: bytes, position: int) -> bytes | None:
    """A text or a binary field with its two bytes of length before it; None where it does not fit the data."""
    start = position + 2
    if start > len(data):
        return None
    end = start + (data[position] << 8 | data[position + 1])
    return data[start:end] if end <= len(data) else None


def is_text(data: bytes) -> bool:
    """Whether bytes are a text as MQTT has it: UTF-8 without surrogates and without U+0000."""
    if b"\0" in data:
        return False
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def take_binary(data: bytes, place: int) -> tuple[bytes, int]:
    """A field of bytes, and the place behind it."""
    field = text_at(data, place)
    if field is None:
        raise malformed()
    return field, place + 2 + len(field)


def take_text(data: bytes, place: int) -> tuple[bytes, int]:
    field, place = take_binary(data, place)
    if not is_text(field):
        raise malformed("malformed text")
    return field, place


def take_number(data: bytes, place: int, size: int) -> tuple[int, int]:
    end = place + size
    if end > len(data):
        raise malformed()
    return int.from_bytes(data[place:end], "big"), end


def take_packet_id(data: bytes, place: int, refused: Callable[[str], Violation] = protocol_error) -> tuple[int, int]:
    """``refused`` is what an identifier of 0 is."""
    packet_id, place = take_number(data, place, 2)
    if packet_id == 0:
        raise refused("packet identifier 0")
    return packet_id, place


def take_length(data: bytes, place: int) -> tuple[int, int]:
    """A length of one to four bytes. A longer form than needed is malformed."""
    length, end = variable_length(data, place, len(data))
    if end < 0 or (end - place > 1 and data[end - 1] == 0):
        raise malformed()
    return length, end


def encode_length(length: int) -> bytes:
    """The variable-length size of a packet: seven bits a byte, the lowest first, at most four bytes."""
    if length < 0x80:
        return bytes((length,))
    if length < 0x4000:
        return bytes((length & 0x7F | 0x80, length >> 7))
    if length > LENGTH_MAX:
        raise ValueError(f"a packet of {length} bytes: MQTT allows {LENGTH_MAX}")
    parts = bytearray()
    while length >= 0x80:
        parts.append(length & 0x7F | 0x80)
        length >>= 7
    parts.append(length)
    return bytes(parts)


def encode_frame(first: int, body: bytes) -> bytes:
    """A whole packet: its first byte, its length, its body."""
    return bytes((first,)) + encode_length(len(body)) + body


def encode_text(data: bytes) -> bytes:
    if len(data) > TEXT_BYTES_MAX:
        raise ValueError(f"a field of {len(data)} bytes: MQTT allows {TEXT_BYTES_MAX}")
    return len(data).to_bytes(2, "big") + data


def encode_packet_id(packet_id: int) -> bytes:
    if not 0 < packet_id <= PACKET_ID_MAX:
        raise ValueError(f"packet identifier {packet_id}: expected 1 to {PACKET_ID_MAX}")
    return packet_id.to_bytes(2, "big")
