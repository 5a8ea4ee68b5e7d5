"""MQTT packets, values to bytes. What a version has no place for is left out."""

from tidegate.mqtt.connect import Connect, encode_connect
from tidegate.mqtt.fields import encode_frame, encode_packet_id, encode_text
from tidegate.mqtt.kinds import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBLISH,
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
from tidegate.mqtt.properties import (
    EMPTY,
    Properties,
    encode_properties,
    encode_properties_of,
)

_FLAG = 0x02


def encode(packet: Packet, version: int) -> bytes:  # noqa: PLR0911 - one for each kind
    """The whole packet. ValueError where a part of it is longer than MQTT can say."""
    match packet:
        case Publish():
            return _encode_publish(packet, version)
        case Ack(kind=kind, packet_id=packet_id, code=code, properties=properties):
            tail = _encode_tail(code, properties, version)
            return encode_frame(kind | (_FLAG if kind == PUBREL else 0), encode_packet_id(packet_id) + tail)
        case Connect():
            return encode_frame(CONNECT, encode_connect(packet))
        case Connack(session_present=present, code=code, properties=properties):
            return encode_frame(CONNACK, bytes((present, code)) + encode_properties_of(properties, version))
        case Subscribe(packet_id=packet_id, entries=entries, properties=properties):
            filters = b"".join(encode_text(topic_filter) + bytes((options,)) for topic_filter, options in entries)
            head = encode_packet_id(packet_id) + encode_properties_of(properties, version)
            return encode_frame(SUBSCRIBE | _FLAG, head + filters)
        case Unsubscribe(packet_id=packet_id, filters=names, properties=properties):
            head = encode_packet_id(packet_id) + encode_properties_of(properties, version)
            return encode_frame(UNSUBSCRIBE | _FLAG, head + b"".join(map(encode_text, names)))
        case Suback(packet_id=packet_id, codes=codes, properties=properties):
            return encode_frame(SUBACK, encode_packet_id(packet_id) + encode_properties_of(properties, version) + codes)
        case Unsuback(packet_id=packet_id, codes=codes, properties=properties):
            tail = encode_properties(properties) + codes if version == 5 else b""
            return encode_frame(UNSUBACK, encode_packet_id(packet_id) + tail)
        case Ping():
            return encode_frame(PINGREQ, b"")
        case Pong():
            return encode_frame(PINGRESP, b"")
        case Disconnect(code=code, properties=properties):
            return encode_frame(DISCONNECT, _encode_tail(code, properties, version))
        case Auth(code=code, properties=properties):
            is_short = code == 0 and properties == EMPTY
            return encode_frame(AUTH, b"" if is_short else bytes((code,)) + encode_properties(properties))


def _encode_publish(packet: Publish, version: int) -> bytes:
    first = PUBLISH | packet.duplicate << 3 | packet.qos << 1 | packet.retain
    parts = [encode_text(packet.topic)]
    if packet.qos:
        parts.append(encode_packet_id(packet.packet_id))
    if version == 5:
        parts.append(encode_properties(packet.properties))
    parts.append(packet.payload)
    return encode_frame(first, b"".join(parts))


def _encode_tail(code: int, properties: Properties, version: int) -> bytes:
    if version < 5 or (code == 0 and properties == EMPTY):
        return b""
    return bytes((code,)) + (b"" if properties == EMPTY else encode_properties(properties))
