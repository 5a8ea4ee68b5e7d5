"""A word more on an acknowledgement of MQTT 5: where it has properties, one is added; where it has none, they begin."""

from tidegate.mqtt.fields import TEXT_BYTES_MAX, encode_frame, encode_length, encode_text, take_length
from tidegate.mqtt.frames import frame_size
from tidegate.mqtt.properties import USER_PROPERTY

_SUCCESS = b"\0"
_ID_BYTES, _CODE_BYTES = 2, 3


def with_user_property(packet: bytes, name: bytes, value: bytes) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP, in any of its forms, with one more user property.

    A value that is longer than MQTT can say is left out.
    """
    if len(value) > TEXT_BYTES_MAX:
        return packet
    header, _ = frame_size(packet, 0)
    body = packet[header:]
    head = body[:_CODE_BYTES] if len(body) > _ID_BYTES else body + _SUCCESS
    present = b""
    if len(body) > _CODE_BYTES:
        length, place = take_length(body, _CODE_BYTES)
        present = body[place : place + length]
    added = present + bytes((USER_PROPERTY,)) + encode_text(name) + encode_text(value)
    return encode_frame(packet[0], head + encode_length(len(added)) + added)
