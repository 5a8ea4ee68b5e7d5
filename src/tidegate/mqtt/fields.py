"""The fields that MQTT packets are made of: numbers, texts and lengths, each read strictly at a place in the bytes."""

from tidegate.mqtt.violations import malformed

TEXT_BYTES_MAX = 65_535
LENGTH_MAX = 268_435_455


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


def take_packet_id(data: bytes, place: int) -> tuple[int, int]:
    packet_id, place = take_number(data, place, 2)
    if packet_id == 0:
        raise malformed("packet identifier 0")
    return packet_id, place


def take_length(data: bytes, place: int) -> tuple[int, int]:
    """A length of one to four bytes. A longer form than needed is malformed."""
    length = 0
    for index in range(4):
        if place + index >= len(data):
            break
        byte = data[place + index]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if index and byte == 0:
                break
            return length, place + index + 1
    raise malformed()


def encode_text(data: bytes) -> bytes:
    if len(data) > TEXT_BYTES_MAX:
        raise ValueError(f"a field of {len(data)} bytes: MQTT allows {TEXT_BYTES_MAX}")
    return len(data).to_bytes(2, "big") + data


def encode_packet_id(packet_id: int) -> bytes:
    if not 0 < packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}: expected 1 to 65535")
    return packet_id.to_bytes(2, "big")
