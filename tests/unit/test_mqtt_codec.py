"""The MQTT client codec against bytes written out by hand from the MQTT 3.1.1 document."""

import pytest

from tidegate.mqtt import client as mqtt
from tidegate.mqtt.client import (
    ConnectionAnswered,
    MessageReceived,
    PingAnswered,
    ProtocolViolated,
    PublishAcknowledged,
    Subscribed,
)
from tidegate.mqtt.fields import encode_length


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param(
            mqtt.encode_connect("c1", keep_alive_s=60),
            b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02c1",
            id="connect without credentials begins a clean session",
        ),
        pytest.param(
            mqtt.encode_connect("c1", user="u", password="pw", clean=False, keep_alive_s=10),
            b"\x10\x15\x00\x04MQTT\x04\xc0\x00\x0a\x00\x02c1\x00\x01u\x00\x02pw",
            id="connect with credentials continues a session",
        ),
        pytest.param(mqtt.encode_publish(b"a/b", b"xy"), b"\x30\x07\x00\x03a/bxy", id="QoS 0 has no packet identifier"),
        pytest.param(
            mqtt.encode_publish(b"a/b", b"xy", packet_id=258),
            b"\x32\x09\x00\x03a/b\x01\x02xy",
            id="QoS 1 has one, highest byte first",
        ),
        pytest.param(
            mqtt.encode_publish(b"a/b", b"xy", packet_id=1, duplicate=True),
            b"\x3a\x09\x00\x03a/b\x00\x01xy",
            id="a resent message is marked",
        ),
        pytest.param(mqtt.encode_publish(b"t", b"", retain=True), b"\x31\x03\x00\x01t", id="retained"),
        pytest.param(
            mqtt.encode_subscribe("a/b", packet_id=258), b"\x82\x08\x01\x02\x00\x03a/b\x00", id="subscribed at QoS 0"
        ),
        pytest.param(mqtt.PINGREQ + mqtt.DISCONNECT, b"\xc0\x00\xe0\x00", id="ping and disconnect"),
        pytest.param(encode_length(0), b"\x00", id="length 0"),
        pytest.param(encode_length(127), b"\x7f", id="the longest of one byte"),
        pytest.param(encode_length(128), b"\x80\x01", id="the shortest of two"),
        pytest.param(encode_length(16_383), b"\xff\x7f", id="the longest of two"),
        pytest.param(encode_length(16_384), b"\x80\x80\x01", id="the shortest of three"),
        pytest.param(encode_length(268_435_455), b"\xff\xff\xff\x7f", id="the longest of all"),
    ],
)
def test_encoded(encoded: bytes, expected: bytes) -> None:
    assert encoded == expected


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda: mqtt.encode_connect("c", password="p"), id="password without user"),
        pytest.param(lambda: mqtt.encode_connect("c", keep_alive_s=70_000), id="keep-alive over 16 bits"),
        pytest.param(lambda: mqtt.encode_connect("c" * 70_000), id="client identifier over 16 bits"),
        pytest.param(lambda: mqtt.encode_publish(b"", b"x"), id="empty topic"),
        pytest.param(lambda: mqtt.encode_publish(b"t", b"x", packet_id=0), id="packet identifier 0"),
        pytest.param(lambda: mqtt.encode_publish(b"t", b"x", packet_id=65_536), id="packet identifier over 16 bits"),
        pytest.param(lambda: mqtt.encode_publish(b"t", b"x", duplicate=True), id="QoS 0 as duplicate"),
        pytest.param(lambda: mqtt.encode_subscribe("t", packet_id=0), id="subscription without packet identifier"),
        pytest.param(lambda: encode_length(268_435_456), id="packet over 256 MiB"),
    ],
)
def test_refused(encode) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode()


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b"\x20\x02\x00\x00", [ConnectionAnswered(0, False)], id="accepted"),
        pytest.param(b"\x20\x02\x01\x00", [ConnectionAnswered(0, True)], id="accepted, session kept"),
        pytest.param(b"\x20\x02\x00\x05", [ConnectionAnswered(5, False)], id="refused"),
        pytest.param(b"\x40\x02\x01\x02", [PublishAcknowledged(258)], id="acknowledged"),
        pytest.param(b"\x40\x82\x00\x01\x02", [PublishAcknowledged(258)], id="length in two bytes where one would do"),
        pytest.param(b"\xd0\x00", [PingAnswered()], id="ping answered"),
        pytest.param(b"\x30\x05\x00\x01txx", [MessageReceived(b"t", b"xx")], id="a message"),
        pytest.param(b"\x31\x03\x00\x01t", [MessageReceived(b"t", b"")], id="a retained message without payload"),
        pytest.param(
            b"\x32\x07\x00\x01t\x00\x01xx\xd0\x00", [PingAnswered()], id="a message at QoS 1 was not asked for: skipped"
        ),
        pytest.param(b"\x50\x02\x00\x01\xd0\x00", [PingAnswered()], id="a packet nobody asked for is skipped"),
        pytest.param(b"\x90\x03\x01\x02\x00", [Subscribed(258, b"\x00")], id="subscribed"),
        pytest.param(b"\x90\x04\x00\x01\x80\x01", [Subscribed(1, b"\x80\x01")], id="the first of two is refused"),
        pytest.param(b"\x40\x02\x00", [], id="half a packet says nothing yet"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_decoded(data: bytes, events: list[mqtt.Event]) -> None:
    assert mqtt.Decoder().receive(data) == events


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x00\x00", id="reserved type 0"),
        pytest.param(b"\xf0\x00", id="reserved type 15"),
        pytest.param(b"\x40\x03\x00\x01\x00", id="PUBACK of three bytes"),
        pytest.param(b"\x42\x02\x00\x01", id="PUBACK with flags"),
        pytest.param(b"\x30\x03\x00\x02t", id="topic longer than its message"),
        pytest.param(b"\x30\x03\x00\x00t", id="message without a topic"),
        pytest.param(b"\x30\x02\x00\x01", id="message too short for a topic"),
        pytest.param(b"\x90\x02\x00\x01", id="SUBACK without a code"),
        pytest.param(b"\x92\x03\x00\x01\x00", id="SUBACK with flags"),
        pytest.param(b"\x30\xff\xff\xff\xff\x01", id="length of five bytes"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
    ],
)
def test_what_is_not_mqtt_ends_the_decoder(data: bytes) -> None:
    decoder = mqtt.Decoder()
    events = decoder.receive(data + b"\xd0\x00")
    if events:  # the text of another protocol may first look like a long packet to skip
        assert isinstance(events[-1], ProtocolViolated)
        assert len(events) == 1
        assert decoder.receive(b"\xd0\x00") == []


def test_a_huge_packet_that_is_skipped_is_never_held() -> None:
    decoder = mqtt.Decoder()
    decoder.receive(b"\x30" + encode_length(100_000_000))
    for _ in range(100):
        assert decoder.receive(bytes(1_000_000)) == []
        assert len(decoder._pending) == 0
    assert decoder.receive(b"\xd0\x00") == [PingAnswered()]


def test_the_longest_message_is_held_and_a_longer_one_is_not() -> None:
    longest = mqtt.encode_publish(b"t", bytes(mqtt.BODY_BYTES_MAX - 3))
    decoder = mqtt.Decoder()
    assert decoder.receive(longest[:-1]) == []
    assert len(decoder._pending) == len(longest) - 1
    assert decoder.receive(longest[-1:]) == [MessageReceived(b"t", bytes(mqtt.BODY_BYTES_MAX - 3))]
    assert decoder.receive(mqtt.encode_publish(b"t", bytes(mqtt.BODY_BYTES_MAX - 2))[:-1]) == []
    assert len(decoder._pending) == 0
    assert decoder.receive(b"\x00\xd0\x00") == [PingAnswered()]


def test_refusals_say_why() -> None:
    assert ConnectionAnswered(0, False).refusal() is None
    assert ConnectionAnswered(5, False).refusal() == "the user is not authorised"
    assert ConnectionAnswered(77, False).refusal() == "code 77"
