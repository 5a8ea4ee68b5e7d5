"""Who may say what and when: every pair of state and packet, against the standard and against the frame scanner."""

import itertools

import pytest

from tidegate.mqtt import packets, properties
from tidegate.mqtt.frames import FrameScanner
from tidegate.mqtt.packets import PACKET_KINDS, Disconnect, Packet, Publish
from tidegate.mqtt.properties import Properties
from tidegate.mqtt.rules import Action, Side, State, check_content, verdict
from tidegate.mqtt.violations import Violation

EVERY = list(itertools.product(State, Side, (3, 4, 5), PACKET_KINDS, (False, True)))
D, B = Side.DEVICE, Side.BROKER
# MQTT 5, section 2.1.2: the direction of flow of each kind.
FLOWS = {
    packets.CONNECT: (D,),
    packets.CONNACK: (B,),
    **dict.fromkeys((packets.PUBLISH, packets.PUBACK, packets.PUBREC, packets.PUBREL, packets.PUBCOMP), (D, B)),
    **dict.fromkeys((packets.SUBSCRIBE, packets.UNSUBSCRIBE, packets.PINGREQ), (D,)),
    **dict.fromkeys((packets.SUBACK, packets.UNSUBACK, packets.PINGRESP), (B,)),
    packets.DISCONNECT: (D, B),
    packets.AUTH: (D, B),
}


def test_every_pair_has_a_verdict_and_a_refusal_says_why() -> None:
    for state, side, version, kind, authenticates in EVERY:
        found = verdict(state, side, version, kind, authenticates=authenticates)
        assert (found.action is Action.REFUSE) == bool(found.reason) == bool(found.code)
        if found.reason:
            assert (found.code, found.reason) == (0x82, "protocol error" if side is D else "broken by the broker")


def test_nothing_flows_against_its_direction() -> None:
    for state, side, version, kind, authenticates in EVERY:
        found = verdict(state, side, version, kind, authenticates=authenticates)
        if side not in FLOWS[kind]:
            assert found.action in (Action.REFUSE, Action.IGNORE)


def test_a_session_begins_with_connect_and_connack_and_has_one_of_each() -> None:
    for state, side, version, kind, authenticates in EVERY:
        action = verdict(state, side, version, kind, authenticates=authenticates).action
        if kind == packets.CONNECT:
            assert (action is Action.PASS) == (state is State.OPENING and side is D)
        if kind == packets.CONNACK:
            assert (action is Action.PASS) == (state is State.CONNECTING and side is B)
        if state is State.OPENING and action is not Action.REFUSE:
            assert (side, kind) == (D, packets.CONNECT)


def test_auth_is_for_mqtt_5_with_a_method() -> None:
    for state, side, version, kind, authenticates in EVERY:
        action = verdict(state, side, version, kind, authenticates=authenticates).action
        if kind == packets.AUTH and action is Action.PASS:
            assert version == 5
            assert authenticates
            assert state in (State.CONNECTING, State.CONNECTED)


def test_what_comes_before_connack_is_kept_unless_the_device_has_to_prove_itself() -> None:
    for version, kind in itertools.product((3, 4, 5), PACKET_KINDS):
        early = verdict(State.CONNECTING, D, version, kind).action
        later = verdict(State.CONNECTED, D, version, kind).action
        assert (early is Action.KEEP) == (later is Action.PASS)
        proving = verdict(State.CONNECTING, D, 5, kind, authenticates=True).action
        assert (proving is not Action.REFUSE) == (kind in (packets.AUTH, packets.DISCONNECT))


def test_after_its_farewell_a_device_says_nothing_and_hears_nothing() -> None:
    for version, kind in itertools.product((3, 4, 5), PACKET_KINDS):
        assert verdict(State.ENDING, D, version, kind).action is Action.REFUSE
        assert verdict(State.ENDING, B, version, kind).action is Action.IGNORE


def example(kind: int, version: int) -> bytes:
    """A packet of the kind that has nothing wrong with it but perhaps its moment."""
    body = {
        packets.CONNECT: b"\0\4MQTT\4\2\0\0\0\1d",
        packets.CONNACK: b"\0\0",
        packets.PUBLISH: b"\0\1t\0",
        packets.SUBSCRIBE: b"\0\7\0\1t\0" if version < 5 else b"\0\7\0\0\1t\0",
        packets.UNSUBSCRIBE: b"\0\7\0\1t" if version < 5 else b"\0\7\0\0\1t",
        packets.SUBACK: b"\0\7\0",
    }.get(kind, b"" if kind >= packets.PINGREQ else b"\0\7")
    flag = 2 if kind in (packets.PUBREL, packets.SUBSCRIBE, packets.UNSUBSCRIBE) else 0
    return packets.encode_frame(kind | flag, body)


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("state", [State.CONNECTED, State.ENDING])
def test_the_frame_scanner_says_the_same_of_a_device(state: State, version: int) -> None:
    for kind in PACKET_KINDS:
        scanner = FrameScanner(1_000, version=version, from_device=True)
        if state is State.ENDING:
            scanner.scan(example(packets.DISCONNECT, version))
        scanner.scan(example(kind, version))
        # Whether a method was named is not the scanner's to know.
        found = verdict(state, D, version, kind, authenticates=True)
        assert bool(scanner.problem) == (found.action is Action.REFUSE), hex(kind)


@pytest.mark.parametrize(
    ("packet", "side"),
    [
        (Publish(topic=b"t", payload=b"", properties=Properties(identifiers=(1,))), D),
        (Disconnect(properties=Properties(values={properties.SERVER_REFERENCE: b"b"})), D),
        (Disconnect(properties=Properties(values={properties.SESSION_EXPIRY: 1})), B),
        (Disconnect(code=4), B),
    ],
)
def test_what_only_the_other_side_may_say_is_refused(packet: Packet, side: Side) -> None:
    with pytest.raises(Violation):
        check_content(packet, side)
    check_content(packet, B if side is D else D)
