"""Who may say what and when: every pair of state and packet, against the standard and against the frame scanner."""

import itertools

import pytest

from tidegate.mqtt import packets, properties
from tidegate.mqtt.fields import encode_frame
from tidegate.mqtt.frames import FrameScanner
from tidegate.mqtt.packets import PACKET_KINDS, Disconnect, Packet, Publish
from tidegate.mqtt.properties import Properties
from tidegate.mqtt.rules import Handling, Sender, SessionState, check_content, ruling
from tidegate.mqtt.violations import Violation

EVERY = list(itertools.product(SessionState, Sender, (3, 4, 5), PACKET_KINDS, (False, True)))
D, B = Sender.DEVICE, Sender.BROKER
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


def test_every_pair_has_a_ruling_and_a_refusal_says_why() -> None:
    for state, sender, version, kind, authenticates in EVERY:
        found = ruling(state, sender, version, kind, authenticates=authenticates)
        assert (found.handling is Handling.REFUSE) == bool(found.reason) == bool(found.code)
        if found.reason:
            assert (found.code, found.reason) == (0x82, "protocol error" if sender is D else "broken by the broker")


def test_nothing_flows_against_its_direction() -> None:
    for state, sender, version, kind, authenticates in EVERY:
        found = ruling(state, sender, version, kind, authenticates=authenticates)
        if sender not in FLOWS[kind]:
            assert found.handling in (Handling.REFUSE, Handling.IGNORE)


def test_a_session_begins_with_connect_and_connack_and_has_one_of_each() -> None:
    for state, sender, version, kind, authenticates in EVERY:
        handling = ruling(state, sender, version, kind, authenticates=authenticates).handling
        if kind == packets.CONNECT:
            assert (handling is Handling.PASS) == (state is SessionState.OPENING and sender is D)
        if kind == packets.CONNACK:
            assert (handling is Handling.PASS) == (state is SessionState.CONNECTING and sender is B)
        if state is SessionState.OPENING and handling is not Handling.REFUSE:
            assert (sender, kind) == (D, packets.CONNECT)


def test_auth_is_for_mqtt_5_with_a_method() -> None:
    for state, sender, version, kind, authenticates in EVERY:
        handling = ruling(state, sender, version, kind, authenticates=authenticates).handling
        if kind == packets.AUTH and handling is Handling.PASS:
            assert version == 5
            assert authenticates
            assert state in (SessionState.CONNECTING, SessionState.CONNECTED)


def test_what_comes_before_connack_is_kept_unless_the_device_has_to_prove_itself() -> None:
    for version, kind in itertools.product((3, 4, 5), PACKET_KINDS):
        early = ruling(SessionState.CONNECTING, D, version, kind).handling
        later = ruling(SessionState.CONNECTED, D, version, kind).handling
        assert (early is Handling.KEEP) == (later is Handling.PASS)
        proving = ruling(SessionState.CONNECTING, D, 5, kind, authenticates=True).handling
        assert (proving is not Handling.REFUSE) == (kind in (packets.AUTH, packets.DISCONNECT))


def test_after_its_farewell_a_device_says_nothing_and_hears_nothing() -> None:
    for version, kind in itertools.product((3, 4, 5), PACKET_KINDS):
        assert ruling(SessionState.ENDING, D, version, kind).handling is Handling.REFUSE
        assert ruling(SessionState.ENDING, B, version, kind).handling is Handling.IGNORE


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
    return encode_frame(kind | flag, body)


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("state", [SessionState.CONNECTED, SessionState.ENDING])
def test_the_frame_scanner_says_the_same_of_a_device(state: SessionState, version: int) -> None:
    for kind in PACKET_KINDS:
        scanner = FrameScanner(1_000, version=version, from_device=True)
        if state is SessionState.ENDING:
            scanner.scan(example(packets.DISCONNECT, version))
        scanner.scan(example(kind, version))
        # Whether a method was named is not the scanner's to know.
        found = ruling(state, D, version, kind, authenticates=True)
        assert bool(scanner.problem) == (found.handling is Handling.REFUSE), hex(kind)


@pytest.mark.parametrize(
    ("packet", "sender"),
    [
        (Publish(topic=b"t", payload=b"", properties=Properties(identifiers=(1,))), D),
        (Disconnect(properties=Properties(values={properties.SERVER_REFERENCE: b"b"})), D),
        (Disconnect(properties=Properties(values={properties.SESSION_EXPIRY: 1})), B),
        (Disconnect(code=4), B),
    ],
)
def test_what_only_the_other_side_may_say_is_refused(packet: Packet, sender: Sender) -> None:
    with pytest.raises(Violation):
        check_content(packet, sender)
    check_content(packet, B if sender is D else D)
