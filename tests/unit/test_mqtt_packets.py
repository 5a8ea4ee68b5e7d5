"""MQTT packets: the bytes that the standard shows, and every way to break it with the code that is the answer."""

import pytest

from tidegate.mqtt import properties
from tidegate.mqtt.packets import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
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
    Connect,
    Disconnect,
    Packet,
    Ping,
    Pong,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
    encode,
    parse,
)
from tidegate.mqtt.properties import Properties
from tidegate.mqtt.violations import Violation

USER = Properties(user=((b"k", b"v"),))
EVERY = range(3, 6)

WRITTEN = [
    ("3.1 CONNECT", 3, b"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x0a\x00\x01d",
     Connect(version=3, client_id=b"d", clean=True, keep_alive_s=10)),
    ("3.1.1 CONNECT with everything", 4,
     b"\x10\x1a\x00\x04MQTT\x04\xec\x00\x0a\x00\x01d\x00\x01w\x00\x01m\x00\x01u\x00\x02pw",
     Connect(version=4, client_id=b"d", clean=False, keep_alive_s=10, user=b"u", password=b"pw",
             will=Will(topic=b"w", payload=b"m", qos=1, retain=True))),
    ("5 CONNECT with a will", 5,
     b"\x10\x1e\x00\x04MQTT\x05\x06\x00\x0a\x05\x11\x00\x00\x00\x0a\x00\x01d\x05\x18\x00\x00\x00\x05\x00\x01w\x00\x00",
     Connect(version=5, client_id=b"d", clean=True, keep_alive_s=10,
             properties=Properties(values={properties.SESSION_EXPIRY: 10}),
             will=Will(topic=b"w", payload=b"", qos=0, retain=False,
                       properties=Properties(values={properties.WILL_DELAY: 5})))),
    ("3.1.1 CONNACK", 4, b"\x20\x02\x01\x00", Connack(session_present=True, code=0)),
    ("5 CONNACK", 5, b"\x20\x06\x00\x00\x03\x21\x00\x14",
     Connack(session_present=False, code=0, properties=Properties(values={properties.RECEIVE_MAX: 20}))),
    ("3.1.1 PUBLISH", 4, b"\x30\x04\x00\x01tx", Publish(topic=b"t", payload=b"x")),
    ("3.1.1 PUBLISH again", 4, b"\x3b\x06\x00\x01t\x00\x07x",
     Publish(topic=b"t", payload=b"x", qos=1, retain=True, duplicate=True, packet_id=7)),
    ("5 PUBLISH by alias", 5, b"\x34\x08\x00\x00\x00\x07\x03\x23\x00\x02",
     Publish(topic=b"", payload=b"", qos=2, packet_id=7, properties=Properties(values={properties.TOPIC_ALIAS: 2}))),
    ("5 PUBLISH of subscriptions", 5, b"\x30\x08\x00\x01t\x04\x0b\x01\x0b\x02",
     Publish(topic=b"t", payload=b"", properties=Properties(identifiers=(1, 2)))),
    ("3.1.1 PUBACK", 4, b"\x40\x02\x00\x07", Ack(kind=PUBACK, packet_id=7)),
    ("5 PUBACK", 5, b"\x40\x02\x00\x07", Ack(kind=PUBACK, packet_id=7)),
    ("5 PUBREC with a code", 5, b"\x50\x03\x00\x07\x97", Ack(kind=PUBREC, packet_id=7, code=0x97)),
    ("5 PUBREL with a property", 5, b"\x62\x0b\x00\x07\x92\x07\x26\x00\x01k\x00\x01v",
     Ack(kind=PUBREL, packet_id=7, code=0x92, properties=USER)),
    ("3.1.1 SUBSCRIBE", 4, b"\x82\x0b\x00\x07\x00\x01#\x01\x00\x02a/\x00",
     Subscribe(packet_id=7, entries=((b"#", 1), (b"a/", 0)))),
    ("5 SUBSCRIBE", 5, b"\x82\x09\x00\x07\x02\x0b\x05\x00\x01+\x2e",
     Subscribe(packet_id=7, entries=((b"+", 0x2E),), properties=Properties(identifiers=(5,)))),
    ("3.1.1 SUBACK", 4, b"\x90\x04\x00\x07\x01\x80", Suback(packet_id=7, codes=b"\x01\x80")),
    ("5 SUBACK", 5, b"\x90\x05\x00\x07\x00\x02\xa2", Suback(packet_id=7, codes=b"\x02\xa2")),
    ("3.1.1 UNSUBSCRIBE", 4, b"\xa2\x05\x00\x07\x00\x01t", Unsubscribe(packet_id=7, filters=(b"t",))),
    ("5 UNSUBSCRIBE", 5, b"\xa2\x0d\x00\x07\x07\x26\x00\x01k\x00\x01v\x00\x01t",
     Unsubscribe(packet_id=7, filters=(b"t",), properties=USER)),
    ("3.1.1 UNSUBACK", 4, b"\xb0\x02\x00\x07", Unsuback(packet_id=7)),
    ("5 UNSUBACK", 5, b"\xb0\x05\x00\x07\x00\x00\x11", Unsuback(packet_id=7, codes=b"\x00\x11")),
    ("PINGREQ", 4, b"\xc0\x00", Ping()),
    ("PINGRESP", 5, b"\xd0\x00", Pong()),
    ("3.1.1 DISCONNECT", 4, b"\xe0\x00", Disconnect()),
    ("5 DISCONNECT", 5, b"\xe0\x01\x04", Disconnect(code=4)),
    ("5 DISCONNECT with an expiry", 5, b"\xe0\x07\x00\x05\x11\x00\x00\x00\x00",
     Disconnect(properties=Properties(values={properties.SESSION_EXPIRY: 0}))),
    ("5 AUTH", 5, b"\xf0\x06\x18\x04\x15\x00\x01m",
     Auth(code=0x18, properties=Properties(values={properties.AUTHENTICATION_METHOD: b"m"}))),
    ("5 AUTH of nothing", 5, b"\xf0\x00", Auth()),
]  # fmt: skip


@pytest.mark.parametrize(("version", "written", "packet"), [pytest.param(*row[1:], id=row[0]) for row in WRITTEN])
def test_a_packet_is_written_and_read_as_the_standard_has_it(version: int, written: bytes, packet: Packet) -> None:
    assert encode(packet, version) == written
    assert parse(written[0], written[2:], version, properties_max=10) == packet


@pytest.mark.parametrize(
    ("version", "first", "body", "packet"),
    [
        pytest.param(5, PUBACK, b"\0\7\0", Ack(kind=PUBACK, packet_id=7), id="a code that could have been left out"),
        pytest.param(5, PUBACK, b"\0\7\0\0", Ack(kind=PUBACK, packet_id=7), id="properties that could have been"),
        pytest.param(5, DISCONNECT, b"\0\0", Disconnect(), id="a DISCONNECT with all its parts"),
        pytest.param(3, PUBREL | 0x0A, b"\0\7", Ack(kind=PUBREL, packet_id=7), id="3.1 says that it sends again"),
        pytest.param(3, PUBLISH | 8, b"\0\1t", Publish(topic=b"t", payload=b"", duplicate=True), id="3.1 at QoS 0"),
        pytest.param(3, CONNACK, b"\x09\0", Connack(session_present=False, code=0), id="3.1 reserves CONNACK's first"),
    ],
)
def test_other_forms_are_read_too(version: int, first: int, body: bytes, packet: Packet) -> None:
    assert parse(first, body, version, properties_max=10) == packet


BROKEN = [
    ("QoS 3", (3, 4, 5), PUBLISH | 6, b"\0\1t\0\7", 0x81),
    ("a duplicate at QoS 0", (4, 5), PUBLISH | 8, b"\0\1t\0", 0x81),
    ("no topic at all", EVERY, PUBLISH, b"", 0x81),
    ("a topic that is cut off", EVERY, PUBLISH, b"\0\2t", 0x81),
    ("no packet identifier", EVERY, PUBLISH | 2, b"\0\1t\0", 0x81),
    ("packet identifier 0", EVERY, PUBLISH | 2, b"\0\1t\0\0\0", 0x82),
    ("an empty topic", EVERY, PUBLISH, b"\0\0\0", 0x82),
    ("a wildcard in a topic", EVERY, PUBLISH, b"\0\3a/+\0", 0x90),
    ("a hash in a topic", EVERY, PUBLISH, b"\0\3a#b\0", 0x90),
    ("NUL in a topic", EVERY, PUBLISH, b"\0\3a\0b\0", 0x81),
    ("a surrogate in a topic", EVERY, PUBLISH, b"\0\3\xed\xa0\x80\0", 0x81),
    ("an overlong form in a topic", EVERY, PUBLISH, b"\0\2\xc0\x80\0", 0x81),
    ("no properties", (5,), PUBLISH, b"\0\1t", 0x81),
    ("topic alias 0", (5,), PUBLISH, b"\0\0\3\x23\0\0", 0x94),
    ("a wildcard in a response topic", (5,), PUBLISH, b"\0\1t\4\x08\0\1#", 0x82),
    ("an empty response topic", (5,), PUBLISH, b"\0\1t\3\x08\0\0", 0x82),
    ("a property of another packet", (5,), PUBLISH, b"\0\1t\3\x21\0\1", 0x81),
    ("half a packet identifier", EVERY, PUBACK, b"\0", 0x81),
    ("an acknowledgement of 0", EVERY, PUBACK, b"\0\0", 0x82),
    ("an acknowledgement with flags", EVERY, PUBACK | 1, b"\0\7", 0x81),
    ("an acknowledgement with more", (3, 4), PUBACK, b"\0\7\0", 0x81),
    ("a code that does not exist", (5,), PUBACK, b"\0\7\x55", 0x82),
    ("a code of another packet", (5,), PUBREL | 2, b"\0\7\x97", 0x82),
    ("bytes behind the properties", (5,), PUBACK, b"\0\7\0\0x", 0x81),
    ("PUBREL without its flag", EVERY, PUBREL, b"\0\7", 0x81),
    ("PUBREL again", (4, 5), PUBREL | 0x0A, b"\0\7", 0x81),
    ("SUBSCRIBE without its flag", EVERY, SUBSCRIBE, b"\0\7\0\0\1t\0", 0x81),
    ("SUBSCRIBE to nothing", (3, 4), SUBSCRIBE | 2, b"\0\7", 0x82),
    ("SUBSCRIBE to nothing in 5", (5,), SUBSCRIBE | 2, b"\0\7\0", 0x82),
    ("SUBSCRIBE with identifier 0", (3, 4), SUBSCRIBE | 2, b"\0\0\0\1t\0", 0x81),
    ("an empty filter", (3, 4), SUBSCRIBE | 2, b"\0\7\0\0\0", 0x82),
    ("a filter without options", (3, 4), SUBSCRIBE | 2, b"\0\7\0\1t", 0x81),
    ("a filter that is cut off", (3, 4), SUBSCRIBE | 2, b"\0\7\0\2t", 0x81),
    ("a filter that is not UTF-8", (3, 4), SUBSCRIBE | 2, b"\0\7\0\1\xff\0", 0x81),
    ("a hash before the end", (3, 4), SUBSCRIBE | 2, b"\0\7\0\3#/a\0", 0x8F),
    ("a hash within a level", (3, 4), SUBSCRIBE | 2, b"\0\7\0\2a#\0", 0x8F),
    ("a plus within a level", (3, 4), SUBSCRIBE | 2, b"\0\7\0\2a+\0", 0x8F),
    ("SUBSCRIBE at QoS 3", (3, 4), SUBSCRIBE | 2, b"\0\7\0\1t\3", 0x82),
    ("SUBSCRIBE at QoS 3 in 5", (5,), SUBSCRIBE | 2, b"\0\7\0\0\1t\3", 0x82),
    ("options of MQTT 5 before it", (3, 4), SUBSCRIBE | 2, b"\0\7\0\1t\4", 0x81),
    ("reserved options", (5,), SUBSCRIBE | 2, b"\0\7\0\0\1t\x40", 0x81),
    ("retain handling 3", (5,), SUBSCRIBE | 2, b"\0\7\0\0\1t\x30", 0x82),
    ("shared, but not with oneself", (5,), SUBSCRIBE | 2, b"\0\7\0\0\x0a$share/a/b\4", 0x82),
    ("shared by nobody", (5,), SUBSCRIBE | 2, b"\0\7\0\0\x09$share//b\0", 0x8F),
    ("shared by many", (5,), SUBSCRIBE | 2, b"\0\7\0\0\x0a$share/+/b\0", 0x8F),
    ("shared nothing", (5,), SUBSCRIBE | 2, b"\0\7\0\0\x08$share/a\0", 0x8F),
    ("two subscription identifiers", (5,), SUBSCRIBE | 2, b"\0\7\4\x0b\1\x0b\2\0\1t\0", 0x82),
    ("subscription identifier 0", (5,), SUBSCRIBE | 2, b"\0\7\2\x0b\0\0\1t\0", 0x82),
    ("UNSUBSCRIBE from nothing", (3, 4), UNSUBSCRIBE | 2, b"\0\7", 0x82),
    ("SUBACK of nothing", (3, 4), SUBACK, b"\0\7", 0x81),
    ("SUBACK with a code of MQTT 5", (3, 4), SUBACK, b"\0\7\x87", 0x81),
    ("SUBACK with a code of nobody", (5,), SUBACK, b"\0\7\0\3", 0x82),
    ("UNSUBACK with codes before MQTT 5", (3, 4), UNSUBACK, b"\0\7\0", 0x81),
    ("UNSUBACK of nothing", (5,), UNSUBACK, b"\0\7\0", 0x81),
    ("half a CONNACK", EVERY, CONNACK, b"\0", 0x81),
    ("a long CONNACK", (3, 4), CONNACK, b"\0\0\0", 0x81),
    ("CONNACK without properties", (5,), CONNACK, b"\0\0", 0x81),
    ("CONNACK with reserved flags", (4, 5), CONNACK, b"\2\0", 0x81),
    ("CONNACK that refuses a session there is", (4,), CONNACK, b"\1\5", 0x81),
    ("CONNACK with a code of nobody", (3, 4), CONNACK, b"\0\6", 0x81),
    ("PINGREQ with content", EVERY, PINGREQ, b"x", 0x81),
    ("PINGRESP with flags", EVERY, PINGRESP | 1, b"", 0x81),
    ("DISCONNECT with content", (3, 4), DISCONNECT, b"\0", 0x81),
    ("DISCONNECT with a code of nobody", (5,), DISCONNECT, b"\1", 0x82),
    ("AUTH before MQTT 5", (3, 4), AUTH, b"", 0x81),
    ("AUTH without properties", (5,), AUTH, b"\x18", 0x81),
    ("AUTH without a method", (5,), AUTH, b"\x18\0", 0x82),
    ("packet type 0", EVERY, 0, b"", 0x82),
    ("CONNECT of a protocol of nobody", EVERY, CONNECT, b"\0\4mqtt\4\2\0\0\0\1d", 0x84),
]


@pytest.mark.parametrize(("versions", "first", "body", "code"), [pytest.param(*row[1:], id=row[0]) for row in BROKEN])
def test_a_broken_packet_is_refused_with_the_right_code(
    versions: tuple[int, ...], first: int, body: bytes, code: int
) -> None:
    for version in versions:
        with pytest.raises(Violation) as caught:
            parse(first, body, version, properties_max=10)
        assert caught.value.code == code, version


def test_what_cannot_be_written_is_not_written() -> None:
    for packet in (Publish(topic=b"t" * 65_536, payload=b""), Ack(kind=PUBACK, packet_id=0)):
        with pytest.raises(ValueError, match=r"expected 1 to|MQTT allows"):
            encode(packet, 5)


def test_what_a_version_has_no_place_for_is_left_out() -> None:
    assert encode(Ack(kind=PUBACK, packet_id=7, code=0x97, properties=USER), 4) == b"\x40\x02\x00\x07"
    assert encode(Publish(topic=b"t", payload=b"", properties=USER), 4) == b"\x30\x03\x00\x01t"
    assert encode(Unsuback(packet_id=7, codes=b"\x00"), 4) == b"\xb0\x02\x00\x07"
