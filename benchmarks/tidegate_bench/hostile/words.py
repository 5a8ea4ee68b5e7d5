"""What a gateway said before it closed, in a word or two. Pure."""

CONNACK, DISCONNECT, PINGRESP = 0x20, 0xE0, 0xD0


def last_words(listener: str, data: bytes, version: int = 4) -> str:
    """What a listener of that kind said; ``version`` is that of MQTT."""
    match listener:
        case "websocket" | "http":
            return websocket_words(data)
        case "tls":
            return tls_words(data)
        case _:
            return mqtt_words(data, version)


def mqtt_words(data: bytes, version: int) -> str:
    """The last packet that says why, as in ``CONNACK 1`` and ``DISCONNECT 0x82``; else ``PINGRESP`` or nothing."""
    found, answered, place = "", False, 0
    while place + 2 <= len(data):
        kind, length, header = data[place] & 0xF0, *_length(data, place + 1)
        body = data[place + header : place + header + length]
        if kind == CONNACK and len(body) >= 2 and body[1]:
            found = f"CONNACK 0x{body[1]:02x}" if version == 5 or len(body) > 2 else f"CONNACK {body[1]}"
        elif kind == DISCONNECT:
            found = f"DISCONNECT 0x{body[0] if body else 0:02x}"
        answered = answered or kind == PINGRESP
        place += header + length
    return found or ("PINGRESP" if answered else "")


def websocket_words(data: bytes) -> str:
    """``HTTP 400``, or ``close 1003`` behind a successful upgrade; nothing where neither came."""
    if not data.startswith(b"HTTP/"):
        return ""
    head, _, frames = data.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1].decode(errors="replace")
    if status != "101":
        return f"HTTP {status}"
    while len(frames) >= 2:
        opcode, length = frames[0] & 0x0F, frames[1] & 0x7F
        skip = 2
        if length == 126:
            length, skip = int.from_bytes(frames[2:4], "big"), 4
        body = frames[skip : skip + length]
        if opcode == 8:
            return f"close {int.from_bytes(body[:2], 'big')}" if len(body) >= 2 else "close"
        frames = frames[skip + length :]
    return ""


def tls_words(data: bytes) -> str:
    return "TLS alert" if data.startswith(b"\x15") else "TLS" if data.startswith(b"\x16") else ""


def _length(data: bytes, place: int) -> tuple[int, int]:
    """The remaining length, and how many bytes of the packet come before its body."""
    value, shift, start = 0, 0, place
    while place < len(data):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            break
    return value, place - start + 1
