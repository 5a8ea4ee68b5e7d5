"""How CONNECT is laid out in every version: its flags, and its fields in their order. A device needs no more of it."""

from tidegate.mqtt.fields import encode_text

NAMES = {3: b"MQIsdp", 4: b"MQTT", 5: b"MQTT"}
BRIDGE = 0x80  # beside a level before 5: a broker that connects as a client, and says so
RESERVED, CLEAN, WILL, WILL_RETAIN, PASSWORD, USER = 0x01, 0x02, 0x04, 0x20, 0x40, 0x80
WILL_QOS, WILL_QOS_SHIFT = 0x18, 3


def encode_connect_body(
    *,
    version: int,
    client_id: bytes,
    clean: bool,
    keep_alive_s: int,
    user: bytes | None,
    password: bytes | None,
    properties: bytes = b"",
    will_flags: int = 0,
    will: bytes = b"",
    is_bridge: bool = False,
) -> bytes:
    """``properties`` and ``will`` come encoded; the fields of the latter are announced by ``will_flags``."""
    flags = CLEAN * clean | USER * (user is not None) | PASSWORD * (password is not None) | will_flags
    parts = [encode_text(NAMES[version]), bytes((version | BRIDGE * is_bridge, flags)), keep_alive_s.to_bytes(2, "big")]
    parts += (properties, encode_text(client_id), will)
    parts += (encode_text(field) for field in (user, password) if field is not None)
    return b"".join(parts)
