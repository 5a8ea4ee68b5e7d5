"""Packets that no library would send: MQTT of both versions, with every field open to abuse."""

from tidegate.model.readings import TELEMETRY
from tidegate.mqtt.fields import encode_length

# Stands for a name that no other attempt has; the same length, so that packets stay whole.
ANY_NUMBER = b"000000"
ANYBODY = b"hostile-" + ANY_NUMBER
# Stands for the password of that name, and is as long.
PASSWORD = b"tg1.000000.1.000000000000000000000000"
OWN_TOPIC = TELEMETRY.encode() + b"/" + ANYBODY


def text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def packet(first: int, body: bytes) -> bytes:
    return bytes([first]) + encode_length(len(body)) + body


def connect(
    version: int,
    user: str,
    password: str,
    *,
    name: bytes = b"MQTT",
    client_id: bytes = ANYBODY,
    keep_alive_s: int = 60,
    flags: int = 0xC2,
    properties: bytes = b"",
    will: bytes = b"",
) -> bytes:
    """``will`` is everything between client id and user name, and announced by ``flags``."""
    body = text(name) + bytes([version, flags]) + keep_alive_s.to_bytes(2, "big")
    if version == 5:
        body += encode_length(len(properties)) + properties
    return packet(0x10, body + text(client_id) + will + text(user.encode()) + text(password.encode()))


def publish(version: int, topic: bytes, *, first: int = 0x32, properties: bytes = b"") -> bytes:
    """At QoS 1 unless the first byte says otherwise."""
    body = text(topic) + (b"\x00\x01" if first & 0x06 else b"")
    if version == 5:
        body += encode_length(len(properties)) + properties
    return packet(first, body + b"payload")


def user_properties(count: int) -> bytes:
    return (b"\x26" + text(b"k") + text(b"v")) * count


def topic_alias(number: int) -> bytes:
    return b"\x23" + number.to_bytes(2, "big")


def subscribe(version: int, filters: bytes, *, first: int = 0x82, packet_id: int = 1) -> bytes:
    return packet(first, packet_id.to_bytes(2, "big") + (b"\x00" if version == 5 else b"") + filters)


def upgrade(*, path: str = "/mqtt", protocol: str = "mqtt", key: str = "dGhlIHNhbXBsZSBub25jZQ==") -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: gateway", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}"] if key else []
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Protocol: {protocol}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def frame(opcode: int, payload: bytes, *, masked: bool = True) -> bytes:
    """A whole WebSocket frame of fewer than 126 bytes; the mask is zero, which changes nothing."""
    return bytes([0x80 | opcode, (0x80 if masked else 0) | len(payload)]) + (b"\0\0\0\0" if masked else b"") + payload
