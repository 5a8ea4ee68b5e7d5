"""What a 3.1.1 broker says, and what an MQTT 5 client hears of it."""

import msgspec
import pytest
from translating import LIMITS, Held, ack, client, packets_of, plan, publish, subscribe

from tidegate.gateway.connection.translation import Translation
from tidegate.mqtt.client import encode_publish
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    Connack,
    Disconnect,
    Pong,
    Suback,
    encode,
)


def test_messages_come_with_empty_properties() -> None:
    held = Held()
    assert held.translation.wrap(encode_publish(b"a", b"1")) == b"\x30\x05\x00\x01a\x001"
    assert held.from_broker(Pong()) == [Pong()]


def test_beyond_the_clients_receive_maximum_messages_wait_in_order() -> None:
    held = Held(client(receive_max=2))
    sent = [publish(b"%d" % n, packet_id=n, qos=1 + n % 2) for n in range(1, 7)]
    assert held.from_broker(*sent[:3], publish(b"now"), *sent[3:]) == [*sent[:2], publish(b"now")]
    again = msgspec.structs.replace(sent[2], duplicate=True)
    assert held.from_broker(again) == []
    assert held.from_device(ack(PUBREC, 1), ack(PUBACK, 2)) == [ack(PUBREC, 1), ack(PUBACK, 2)]
    assert held.answers() == [again]
    assert held.from_broker(ack(PUBREL, 1)) == [ack(PUBREL, 1)]
    assert held.from_device(ack(PUBCOMP, 1)) == [ack(PUBCOMP, 1)]
    assert held.answers() == [sent[3]]
    held.from_device(ack(PUBREC, 3, 0x80), ack(PUBACK, 4))
    assert held.answers() == sent[4:]


def test_so_much_may_wait_and_then_the_broker_is_not_read() -> None:
    held = Held(client(receive_max=1), limits=msgspec.structs.replace(LIMITS, waiting_bytes_max=250))
    for n in range(1, 4):
        assert not held.translation.is_full
        held.from_broker(publish(payload=bytes(100), packet_id=n), publish(payload=bytes(30), packet_id=n + 10))
    assert held.translation.is_full
    held.from_device(ack(PUBACK, 1), ack(PUBACK, 11))
    assert not held.translation.is_full


def test_a_message_that_the_device_refuses_is_ended_with_the_broker() -> None:
    held = Held()
    held.from_broker(publish(packet_id=5, qos=2))
    assert held.from_device(ack(PUBREC, 5, 0x97)) == [ack(PUBREC, 5)]
    assert held.from_broker(ack(PUBREL, 5)) == []
    assert held.answers_upstream() == [ack(PUBCOMP, 5)]
    assert held.answers_upstream() == []


def test_a_message_larger_than_the_client_takes_is_dropped_and_counted() -> None:
    held = Held(client(packet_bytes_max=50))
    fits, large = bytes(50 - 8), bytes(50 - 7)
    assert held.from_broker(publish(payload=fits, packet_id=1)) == [publish(payload=fits, packet_id=1)]
    assert held.from_broker(publish(payload=large, packet_id=2), publish(payload=large, packet_id=3, qos=2)) == []
    assert held.from_broker(publish(payload=bytes(100))) == []
    assert held.answers_upstream() == [ack(PUBACK, 2), ack(PUBREC, 3)]
    assert held.translation.dropped == 3


def test_an_answer_larger_than_the_client_takes_ends_the_connection() -> None:
    translation = Translation(plan(client(packet_bytes_max=10)), LIMITS, bytes)
    assert translation.wrap(b"\x20\x02\x00\x00") == b""
    assert (translation.problem, translation.code) == ("larger than the client takes", 0x95)
    assert translation.farewell(0x95) == b"\x20\x03\x00\x95\x00"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x20\x02\x00\x00", id="a second CONNACK"),
        pytest.param(b"\x40\x01\x00", id="half an acknowledgement"),
        pytest.param(b"\x40\x05\x00\x01\x00\x09\x00", id="an acknowledgement with broken properties"),
        pytest.param(b"\x90\x03\x00\x01\x07", id="a code that is none"),
        pytest.param(b"\x32\x03\x00\x01a", id="a message without its identifier"),
        pytest.param(b"\xe0\x00", id="DISCONNECT"),
        pytest.param(b"\x00\x00", id="no MQTT"),
    ],
)
def test_a_broker_that_breaks_the_rules(data: bytes) -> None:
    held = Held()
    assert held.translation.wrap(data) == b""
    assert held.problem == ("broken by the broker", 0x80)


def test_before_connack_nothing_else_is_said() -> None:
    translation = Translation(plan(client()), LIMITS, bytes)
    translation.received(encode(subscribe(1, (b"$share/g/a", 0)), 5))
    assert translation.answer() == b""
    assert packets_of(translation.wrap(b"\x20\x02\x00\x00"), 5)[0].code == 0
    assert packets_of(translation.answer(), 5) == [Suback(packet_id=1, codes=b"\x9e")]
    early = Translation(plan(client()), LIMITS, bytes)
    assert early.wrap(b"\xd0\x00") == b""
    assert early.problem == "broken by the broker"


@pytest.mark.parametrize(
    ("code", "refusal"), [(0x82, 0x82), (0x89, 0x89), (0x8B, 0x88), (0x8D, 0x80), (0x8E, 0x80), (0x93, 0x80)]
)
def test_farewell_is_a_disconnect_or_before_connack_a_refusal(code: int, refusal: int) -> None:
    held = Held()
    assert packets_of(held.translation.farewell(code), 5) == [Disconnect(code=code)]
    assert held.from_broker(publish()) == []
    early = Translation(plan(client()), LIMITS, bytes)
    assert packets_of(early.farewell(code), 5) == [Connack(session_present=False, code=refusal)]
