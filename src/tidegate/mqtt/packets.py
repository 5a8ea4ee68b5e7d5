"""MQTT packets, bytes to values and back: every kind of 3.1, 3.1.1 and 5, in both directions.

Versions are 3 (3.1), 4 (3.1.1) and 5. ``parse`` is strict and raises a ``Violation``; ``encode`` trusts what it is
given.
"""

from tidegate.mqtt.connect import Connect, Will
from tidegate.mqtt.encoding import encode
from tidegate.mqtt.fields import text_at
from tidegate.mqtt.kinds import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PACKET_KINDS,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    Ack,
    Auth,
    Connack,
    Disconnect,
    Packet,
    Ping,
    Pong,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from tidegate.mqtt.parsing import parse

__all__ = [
    "AUTH", "CONNACK", "CONNECT", "DISCONNECT", "PACKET_KINDS", "PINGREQ", "PINGRESP", "PUBACK", "PUBCOMP", "PUBLISH",
    "PUBREC", "PUBREL", "SUBACK", "SUBSCRIBE", "UNSUBACK", "UNSUBSCRIBE",
    "Ack", "Auth", "Connack", "Connect", "Disconnect", "Packet", "Ping", "Pong", "Publish", "Suback", "Subscribe",
    "Unsuback", "Unsubscribe", "Will",
    "encode", "parse", "text_at",
]  # fmt: skip
