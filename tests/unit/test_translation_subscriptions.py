"""Subscriptions of an MQTT 5 client on a 3.1.1 broker: what it cannot do, and retained messages."""

import itertools

import msgspec
import pytest
from translating import Held, ack, client, publish, subscribe

from tidegate.gateway.connection.subscribing import UNANSWERED_MAX
from tidegate.gateway.identity.rights import AccessRules
from tidegate.model.identity import Access
from tidegate.mqtt.filter_index import SHAPES_MAX
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    Suback,
    Unsuback,
    Unsubscribe,
)


def test_what_a_311_broker_cannot_do_is_refused_filter_by_filter() -> None:
    held = Held()
    asked = subscribe(5, (b"$share/g/a", 1), (b"b", 0x09), (b"c", 0x05), (b"d", 2))
    assert held.from_device(asked) == [subscribe(5, (b"b", 1), (b"d", 2))]
    assert held.answers() == []
    assert held.from_broker(Suback(packet_id=5, codes=b"\x01\x80")) == [Suback(packet_id=5, codes=b"\x9e\x01\x83\x80")]


def test_who_is_refused_what_is_not_its_own_is_told_so_in_words_of_5() -> None:
    held = Held(rights=AccessRules(Access()).rights_of_device("pump"))
    held.from_device(subscribe(5, (b"downlink/pump", 1), (b"downlink/other", 1), (b"downlink/pump/x", 1)))
    answer = held.from_broker(Suback(packet_id=5, codes=b"\x01\x80\x80"))
    assert answer == [Suback(packet_id=5, codes=b"\x01\x87\x80")], "the last one is the broker's own word"


def test_a_subscribe_with_nothing_to_ask_is_answered_by_the_gateway() -> None:
    held = Held()
    assert held.from_device(subscribe(5, (b"$share/g/a", 1)), Unsubscribe(packet_id=6, filters=(b"$share/g/a",))) == []
    assert held.answers() == [Suback(packet_id=5, codes=b"\x9e"), Unsuback(packet_id=6, codes=b"\x11")]
    assert held.answers() == []


@pytest.mark.parametrize(("session_present", "unknown"), [(False, 0x11), (True, 0x00)])
def test_unsuback_has_a_code_for_each_filter(session_present: bool, unknown: int) -> None:
    held = Held(client(clean=False), session_present=session_present)
    held.from_device(subscribe(1, (b"a", 0), (b"refused", 0)))
    held.from_broker(Suback(packet_id=1, codes=b"\x00\x80"))
    asked = Unsubscribe(packet_id=2, filters=(b"a", b"refused", b"$share/g/a"))
    assert held.from_device(asked) == [Unsubscribe(packet_id=2, filters=(b"a", b"refused"))]
    expected = Unsuback(packet_id=2, codes=bytes((0, unknown, 0x11)))
    assert held.from_broker(Unsuback(packet_id=2)) == [expected]


@pytest.mark.parametrize(
    ("earlier", "asked", "is_asked", "hears"),
    [
        pytest.param([], (b"a/#", 0x01), True, True, id="handling 0"),
        pytest.param([], (b"a/#", 0x11), True, True, id="handling 1, a new subscription"),
        pytest.param([], (b"a/#", 0x21), True, False, id="handling 2"),
        pytest.param([(b"a/#", 0x01)], (b"a/#", 0x01), True, True, id="handling 0 again"),
        pytest.param([(b"a/#", 0x21)], (b"a/#", 0x01), True, True, id="handling 0 after 2"),
        pytest.param([(b"a/#", 0x01)], (b"a/#", 0x11), False, True, id="handling 1 again: the broker is not asked"),
        pytest.param([(b"a/#", 0x01)], (b"a/#", 0x21), False, True, id="handling 2 again: the broker is not asked"),
        pytest.param([(b"a/#", 0x01)], (b"a/#", 0x10), True, False, id="handling 1 at another QoS"),
        pytest.param([(b"+/b", 0x01)], (b"a/#", 0x21), True, True, id="another subscription wants it"),
        pytest.param([(b"+/c", 0x01)], (b"a/#", 0x21), True, False, id="another subscription that does not match"),
    ],
)
def test_retain_handling(
    earlier: list[tuple[bytes, int]], asked: tuple[bytes, int], is_asked: bool, hears: bool
) -> None:
    held = Held()
    for entry in earlier:
        held.from_device(subscribe(1, entry))
        held.from_broker(Suback(packet_id=1, codes=bytes((entry[1] & 3,))))
    upstream = held.from_device(subscribe(2, asked))
    assert upstream == ([subscribe(2, (asked[0], asked[1] & 3))] if is_asked else [])
    if is_asked:
        held.from_broker(Suback(packet_id=2, codes=bytes((asked[1] & 3,))))
    else:
        assert held.answers() == [Suback(packet_id=2, codes=b"\x01")]
    retained = publish(b"a/b", packet_id=7, retain=True)
    assert held.from_broker(retained) == ([retained] if hears else [])
    assert held.answers_upstream() == ([] if hears else [ack(PUBACK, 7)])
    assert held.from_broker(publish(b"a/b")) == [publish(b"a/b")]
    assert held.translation.dropped == 0


@pytest.mark.parametrize(("first", "second", "hears"), [(0x00, 0x20, True), (0x20, 0x00, True), (0x20, 0x10, False)])
def test_retained_messages_that_an_unanswered_subscribe_asked_for_pass(first: int, second: int, hears: bool) -> None:
    held = Held()
    held.from_device(subscribe(1, (b"a", first)), subscribe(2, (b"a", second)))
    assert held.from_broker(publish(retain=True)) == ([publish(retain=True)] if hears else [])


def test_a_retained_message_that_is_sent_again_was_wanted_before() -> None:
    held = Held(client(clean=False), session_present=True)
    held.from_device(subscribe(1, (b"a", 0x21)))
    again = publish(packet_id=1, retain=True, duplicate=True)
    assert held.from_broker(again) == [again]


def test_a_retained_message_at_qos_2_that_is_not_wanted_is_ended_here() -> None:
    held = Held()
    held.from_device(subscribe(1, (b"#", 0x22)))
    retained = publish(packet_id=7, qos=2, retain=True)
    again = msgspec.structs.replace(retained, duplicate=True)
    assert held.from_broker(Suback(packet_id=1, codes=b"\x02"), retained, again, ack(PUBREL, 7))[1:] == []
    assert held.answers_upstream() == [ack(PUBREC, 7), ack(PUBREC, 7), ack(PUBCOMP, 7)]
    assert held.from_broker(ack(PUBREL, 7)) == [ack(PUBREL, 7)]


def test_packet_identifiers_and_unanswered_subscriptions_are_limited() -> None:
    held = Held()
    held.from_device(subscribe(1, (b"a", 0)), subscribe(1, (b"b", 0)))
    assert held.problem == ("protocol error", 0x82)
    held = Held()
    held.from_device(*(subscribe(1 + n, (b"a", 0)) for n in range(UNANSWERED_MAX + 1)))
    assert held.problem == ("too many unanswered subscriptions", 0x97)


def test_only_so_many_subscriptions_are_remembered() -> None:
    held = Held()
    codes = bytearray()
    for n in range(40):
        asked = subscribe(1, *((b"%099d" % (n * 50 + each), 0) for each in range(50)))
        for upstream in held.from_device(asked):
            (answer,) = held.from_broker(Suback(packet_id=1, codes=bytes(len(upstream.entries))))
            codes += answer.codes
        for answer in held.answers():
            codes += answer.codes
    kept = 256 * 1024 // (99 + 64)
    assert codes == bytes(kept) + b"\x97" * (2_000 - kept)
    held.from_device(Unsubscribe(packet_id=2, filters=(b"%099d" % 0,)))
    assert held.from_device(subscribe(3, (b"%099d" % 1_999, 0))) != []


def test_an_answer_to_what_nobody_asked_passes() -> None:
    held = Held()
    held.from_device(Unsubscribe(packet_id=4, filters=(b"a",)))
    assert held.from_broker(Suback(packet_id=4, codes=b"\x01")) == [Suback(packet_id=4, codes=b"\x01")]
    assert held.from_broker(Unsuback(packet_id=5)) == [Unsuback(packet_id=5, codes=b"\0")]
    assert held.from_broker(Unsuback(packet_id=4)) == [Unsuback(packet_id=4, codes=b"\x11")]


def test_filters_of_too_many_shapes_are_refused_and_those_of_known_ones_are_not() -> None:
    """A retained message costs a look-up per shape: wildcards at so many different places are nobody's need."""
    held = Held()
    wild = [b"/".join(levels) for levels in itertools.product((b"a", b"+"), repeat=7)]
    codes = []
    for packet_id, topic_filter in enumerate(wild, 1):
        if held.from_device(subscribe(packet_id, (topic_filter, 0))):
            held.from_broker(Suback(packet_id=packet_id, codes=b"\x00"))
            codes.append(0)
        else:
            (answer,) = held.answers()
            assert isinstance(answer, Suback)
            codes += answer.codes
    assert codes == [0] * (SHAPES_MAX + 1) + [0x97] * (len(wild) - SHAPES_MAX - 1)
    assert held.from_device(subscribe(1_000, (b"b/b/b/b/b/b/+", 0)))
