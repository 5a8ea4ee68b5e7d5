"""What is on its way in both directions: known at any moment, and exact at QoS 2."""

import pytest

from tidegate.gateway.connection.in_flight import InFlight
from tidegate.mqtt.packets import PUBACK, PUBCOMP, PUBREC, PUBREL, Ack, Publish, encode


def publish(packet_id: int, qos: int, *, again: bool = False) -> bytes:
    return encode(Publish(topic=b"t", payload=b"x", qos=qos, packet_id=packet_id, duplicate=again), 5)


def ack(kind: int, packet_id: int, code: int = 0) -> bytes:
    return encode(Ack(kind=kind, packet_id=packet_id, code=code), 5)


UP, DOWN = "up", "down"
FLOWS = {
    "nothing": [],
    "a message at QoS 1": [(UP, publish(1, 1)), (DOWN, ack(PUBACK, 1))],
    "one that is sent twice and answered twice": [
        (UP, publish(1, 1) + publish(1, 1, again=True)),
        (DOWN, ack(PUBACK, 1) + ack(PUBACK, 1)),
    ],
    "a message at QoS 2": [
        (UP, publish(2, 2)),
        (DOWN, ack(PUBREC, 2)),
        (UP, ack(PUBREL, 2)),
        (DOWN, ack(PUBCOMP, 2)),
    ],
    "one at QoS 2 that the broker refuses": [(UP, publish(2, 2)), (DOWN, ack(PUBREC, 2, 0x87))],
    "one at QoS 2 that is sent twice": [
        (UP, publish(2, 2) + publish(2, 2, again=True)),
        (DOWN, ack(PUBREC, 2) + ack(PUBREC, 2)),
        (UP, ack(PUBREL, 2)),
        (DOWN, ack(PUBCOMP, 2)),
    ],
    "a release of a session before": [(UP, ack(PUBREL, 4)), (DOWN, ack(PUBCOMP, 4))],
    "a message to the device at QoS 1": [(DOWN, publish(1, 1)), (UP, ack(PUBACK, 1))],
    "a message to the device at QoS 2": [
        (DOWN, publish(3, 2)),
        (UP, ack(PUBREC, 3)),
        (DOWN, ack(PUBREL, 3)),
        (UP, ack(PUBCOMP, 3)),
    ],
    "both directions with one identifier": [
        (UP, publish(1, 1)),
        (DOWN, publish(1, 1)),
        (DOWN, ack(PUBACK, 1)),
        (UP, ack(PUBACK, 1)),
    ],
}


def played(flow: list[tuple[str, bytes]]) -> list[bool]:
    """Whether nothing is on its way, after each step."""
    in_flight, quiet = InFlight(), []
    for direction, data in flow:
        if direction == UP:
            in_flight.sent_up(data)
        else:
            begun = data.count(b"\x00\x01t") if data[0] & 0xF6 == 0x32 else 0
            in_flight.counted_down(begun, sum(data[at] == PUBACK for at in range(0, len(data), 4)) if not begun else 0)
            in_flight.follow_down(data)
        quiet.append(in_flight.is_none)
    return quiet


@pytest.mark.parametrize("flow", [pytest.param(flow, id=name) for name, flow in FLOWS.items() if flow])
def test_a_connection_is_quiet_when_every_message_is_done_with_and_not_before(flow: list[tuple[str, bytes]]) -> None:
    assert played(flow) == [False] * (len(flow) - 1) + [True]


def test_an_acknowledgement_of_nothing_ends_nothing() -> None:
    in_flight = InFlight()
    in_flight.sent_up(ack(PUBACK, 9) + publish(1, 1))
    assert (in_flight.down, in_flight.up, in_flight.is_none) == (0, 1, False)
    in_flight.counted_down(0, 5)
    assert in_flight.is_none
    in_flight.sent_up(publish(2, 1))
    assert not in_flight.is_none
