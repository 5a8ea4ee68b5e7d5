"""How an MQTT 5 device is told that a publish of its is not passed on, and why."""

import msgspec

from tidegate.mqtt import packets, properties
from tidegate.mqtt.packets import PUBACK, PUBREC, Ack, Publish
from tidegate.mqtt.properties import Properties
from tidegate.mqtt.violations import NOT_AUTHORIZED, Violation

NOT_ITS_OWN = b"This topic is not one of this client's."


def refusal_of(packet: bytes, body: int, words_bytes_max: int) -> bytes | None:
    """The answer to a publish on a topic that is not the device's own: none at QoS 0. None where there can be no going
    on: publishes to come rely on the alias that it gives its topic. ``words_bytes_max``: a device takes a sentence
    along with the code in a packet of at most so many bytes."""
    try:
        publish = packets.parse(packet[0], packet[body:], 5, properties_max=65_535)
    except Violation:
        return None
    assert isinstance(publish, Publish)
    if properties.TOPIC_ALIAS in publish.properties.values:
        return None
    return refusal(publish, words_bytes_max)


def refusal(publish: Publish, words_bytes_max: int) -> bytes:
    """The same where aliases need not be kept."""
    if not publish.qos:
        return b""
    kind = PUBACK if publish.qos == 1 else PUBREC
    plain = Ack(kind=kind, packet_id=publish.packet_id, code=NOT_AUTHORIZED)
    told = Properties(values={properties.REASON_STRING: NOT_ITS_OWN})
    answer = packets.encode(msgspec.structs.replace(plain, properties=told), 5)
    return answer if len(answer) <= words_bytes_max else packets.encode(plain, 5)
