"""Advice on the acknowledgements of an MQTT 5 client."""

import pytest
from translating import Held, ack, client, packets_of

from tidegate.mqtt import properties as p
from tidegate.mqtt.acknowledgements import with_user_property
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    Ack,
    Connect,
    encode,
)
from tidegate.mqtt.properties import Properties

DOCUMENT = b'{"interval_s":2.0,"lifetime_s":10.0}'


@pytest.mark.parametrize("kind", [PUBACK, PUBCOMP])
def test_advice_rides_on_the_acknowledgement_once(kind: int) -> None:
    held = Held()
    held.advice = [DOCUMENT]
    advised = Ack(kind=kind, packet_id=1, properties=Properties(user=((b"tidegate-advice", DOCUMENT),)))
    assert held.from_broker(ack(PUBREC, 1), ack(kind, 1), ack(kind, 2)) == [ack(PUBREC, 1), advised, ack(kind, 2)]


@pytest.mark.parametrize(
    "connect",
    [
        pytest.param(client(request_problem_information=0), id="a client that wants no properties"),
        pytest.param(client(packet_bytes_max=50), id="a client that takes no packet of that size"),
    ],
)
def test_advice_does_not_ride_where_it_is_not_welcome(connect: Connect) -> None:
    held = Held(connect)
    held.advice = [DOCUMENT]
    assert held.from_broker(ack(PUBACK, 1)) == [ack(PUBACK, 1)]


REASON = Properties(values={p.REASON_STRING: b"slow down"}, user=((b"k", b"v"),))


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        pytest.param(
            b"\x40\x02\x00\x09",
            Ack(kind=PUBACK, packet_id=9, properties=Properties(user=((b"n", b"w"),))),
            id="without a code",
        ),
        pytest.param(
            b"\x70\x03\x00\x09\x92",
            Ack(kind=PUBCOMP, packet_id=9, code=0x92, properties=Properties(user=((b"n", b"w"),))),
            id="with a code alone",
        ),
        pytest.param(
            b"\x40\x04\x00\x09\x97\x00",
            Ack(kind=PUBACK, packet_id=9, code=0x97, properties=Properties(user=((b"n", b"w"),))),
            id="with empty properties",
        ),
        pytest.param(
            encode(Ack(kind=PUBACK, packet_id=9, code=0x97, properties=REASON), 5),
            Ack(
                kind=PUBACK,
                packet_id=9,
                code=0x97,
                properties=Properties(values=REASON.values, user=((b"k", b"v"), (b"n", b"w"))),
            ),
            id="with properties of its own",
        ),
    ],
)
def test_a_user_property_is_added_to_any_form(packet: bytes, expected: Ack) -> None:
    assert packets_of(with_user_property(packet, b"n", b"w"), 5) == [expected]


def test_a_value_that_mqtt_cannot_say_is_left_out() -> None:
    assert with_user_property(b"\x40\x02\x00\x09", b"n", bytes(65_536)) == b"\x40\x02\x00\x09"
    (long,) = packets_of(with_user_property(b"\x40\x02\x00\x09", b"n", b"w" * 65_535), 5)
    assert len(long.properties.user[0][1]) == 65_535
