"""An MQTT 5 client on a 3.1.1 broker: what each side says, and what the other hears."""

import msgspec
import pytest

from tidegate.gateway.connection.connect_plan import ConnectPlan, Limits, plan_connect
from tidegate.gateway.connection.subscribing import UNANSWERED_MAX
from tidegate.gateway.connection.translation import Translation
from tidegate.mqtt import properties as p
from tidegate.mqtt.acknowledgements import with_user_property
from tidegate.mqtt.client import encode_publish
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
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
from tidegate.mqtt.properties import NEVER_EXPIRES, Properties
from tidegate.mqtt.violations import Violation

LIMITS = Limits(
    packet_bytes_max=10_000,
    topic_bytes_max=100,
    properties_max=8,
    keep_alive_s_max=600,
    receive_max=3,
    topic_alias_max=2,
)
DOCUMENT = b'{"interval_s":2.0,"lifetime_s":10.0}'


def client(client_id: bytes = b"pump-7", *, clean: bool = True, keep_alive_s: int = 60, **asked: int) -> Connect:
    values: dict[int, int | bytes] = {getattr(p, name.upper()): value for name, value in asked.items()}
    return Connect(
        version=5, client_id=client_id, clean=clean, keep_alive_s=keep_alive_s, properties=Properties(values=values)
    )


def plan(connect: Connect, limits: Limits = LIMITS) -> ConnectPlan:
    return plan_connect(connect, assigned_id="gateway-1-42", limits=limits)


def packets_of(data: bytes, version: int) -> list[Packet]:
    found, start = [], 0
    for first, body, end in frames_of(data):
        found.append(parse(first, data[body:end], version, properties_max=64))
        start = end
    assert start == len(data)
    return found


class Held:
    """A connected client and its translation; what each side says and hears are packets."""

    def __init__(self, connect: Connect | None = None, *, limits: Limits = LIMITS, session_present: bool = False):
        self.advice: list[bytes] = []
        self.translation = Translation(plan(connect or client(), limits), limits, self.take_advice)
        self.connack = self.from_broker(Connack(session_present=session_present, code=0))[0]

    def take_advice(self) -> bytes:
        return self.advice.pop() if self.advice else b""

    def from_device(self, *packets: Packet) -> list[Packet]:
        return packets_of(self.translation.received(b"".join(encode(each, 5) for each in packets)), 4)

    def from_broker(self, *packets: Packet, version: int = 4) -> list[Packet]:
        return packets_of(self.translation.wrap(b"".join(encode(each, version) for each in packets)), 5)

    def answers(self) -> list[Packet]:
        return packets_of(self.translation.answer(), 5)

    def answers_upstream(self) -> list[Packet]:
        return packets_of(self.translation.answer_upstream(), 4)

    @property
    def problem(self) -> tuple[str, int]:
        return self.translation.problem, self.translation.code


def publish(topic: bytes = b"a", payload: bytes = b"1", *, packet_id: int = 0, qos: int | None = None, **rest: object):
    qos = qos if qos is not None else int(packet_id > 0)
    return Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id, **rest)


def aliased(topic: bytes, alias: int) -> Publish:
    return publish(topic, properties=Properties(values={p.TOPIC_ALIAS: alias}))


def ack(kind: int, packet_id: int, code: int = 0) -> Ack:
    return Ack(kind=kind, packet_id=packet_id, code=code)


def subscribe(packet_id: int, *entries: tuple[bytes, int]) -> Subscribe:
    return Subscribe(packet_id=packet_id, entries=entries)


# Connecting.


@pytest.mark.parametrize(
    ("clean", "expiry_s", "clean_upstream", "deletes_first", "delete_after_s"),
    [
        pytest.param(True, 0, True, False, None, id="a session for one connection is a clean one"),
        pytest.param(True, 30, False, True, 30, id="anew and to be kept: deleted before, and when it has expired"),
        pytest.param(True, NEVER_EXPIRES, False, True, None, id="anew and kept for ever"),
        pytest.param(False, 0, False, False, 0, id="resumed for the last time: deleted when the client leaves"),
        pytest.param(False, 30, False, False, 30, id="resumed and kept for a while"),
        pytest.param(False, NEVER_EXPIRES, False, False, None, id="resumed and kept for ever"),
    ],
)
def test_a_session_begins_and_ends_as_the_client_says(
    clean: bool, expiry_s: int, clean_upstream: bool, deletes_first: bool, delete_after_s: int | None
) -> None:
    planned = plan(client(clean=clean, session_expiry=expiry_s))
    (upstream,), (deletion,) = packets_of(planned.packet, 4), packets_of(planned.deletion, 4)
    assert upstream == Connect(version=4, client_id=b"pump-7", clean=clean_upstream, keep_alive_s=60)
    assert (deletion.client_id, deletion.clean, planned.deletes_first) == (b"pump-7", True, deletes_first)
    assert Translation(planned, LIMITS, bytes).delete_session_after_s == delete_after_s


def test_will_and_credentials_go_on_without_properties() -> None:
    will = Will(topic=b"gone", payload=b"x", qos=1, retain=True, properties=Properties(values={p.WILL_DELAY: 5}))
    connect = msgspec.structs.replace(client(), will=will, user=b"anna", password=b"secret")
    planned = plan(connect)
    (upstream,), (deletion,) = packets_of(planned.packet, 4), packets_of(planned.deletion, 4)
    assert upstream.will == Will(topic=b"gone", payload=b"x", qos=1, retain=True)
    assert (upstream.user, upstream.password) == (deletion.user, deletion.password) == (b"anna", b"secret")
    assert deletion.will is None
    assert "secret" not in repr(planned)
    assert "anna" not in repr(planned)


def test_a_password_alone_gets_the_user_name_that_311_wants() -> None:
    (upstream,) = packets_of(plan(msgspec.structs.replace(client(), password=b"token")).packet, 4)
    assert (upstream.user, upstream.password) == (b"", b"token")


def test_extended_authentication_is_refused() -> None:
    connect = msgspec.structs.replace(client(), properties=Properties(values={p.AUTHENTICATION_METHOD: b"SCRAM"}))
    with pytest.raises(Violation) as refused:
        plan(connect)
    assert refused.value.code == 0x8C


ANNOUNCED = {
    p.RECEIVE_MAX: 3,
    p.PACKET_BYTES_MAX: 10_000,
    p.TOPIC_ALIAS_MAX: 2,
    p.SUBSCRIPTION_IDENTIFIERS_AVAILABLE: 0,
    p.SHARED_AVAILABLE: 0,
}


@pytest.mark.parametrize(
    ("connect", "limits", "more"),
    [
        pytest.param(client(), LIMITS, {}, id="what is not available"),
        pytest.param(client(b""), LIMITS, {p.ASSIGNED_CLIENT_ID: b"gateway-1-42"}, id="the name it was given"),
        pytest.param(client(keep_alive_s=601), LIMITS, {p.SERVER_KEEP_ALIVE: 600}, id="a keep-alive over the cap"),
        pytest.param(client(keep_alive_s=0), LIMITS, {p.SERVER_KEEP_ALIVE: 600}, id="no keep-alive"),
        pytest.param(
            client(session_expiry=NEVER_EXPIRES),
            msgspec.structs.replace(LIMITS, session_expiry_s_max=3_600),
            {p.SESSION_EXPIRY: 3_600},
            id="a session expiry over the cap",
        ),
    ],
)
def test_connack_announces(connect: Connect, limits: Limits, more: dict[int, int | bytes]) -> None:
    expected = Connack(session_present=False, code=0, properties=Properties(values={**ANNOUNCED, **more}))
    assert Held(connect, limits=limits).connack == expected


def test_a_named_client_is_deleted_first_and_an_assigned_one_is_new_anyway() -> None:
    assert plan(client(session_expiry=9)).deletes_first
    assert not plan(client(b"", session_expiry=9)).deletes_first


def test_a_resumed_session_is_announced() -> None:
    assert Held(client(clean=False), session_present=True).connack.session_present


@pytest.mark.parametrize(("code", "translated"), [(1, 0x84), (2, 0x85), (3, 0x88), (4, 0x86), (5, 0x87)])
def test_a_refusal_is_said_in_the_words_of_mqtt_5_and_is_the_last_word(code: int, translated: int) -> None:
    translation = Translation(plan(client()), LIMITS, bytes)
    assert translation.wrap(bytes((0x20, 2, 0, code))) == bytes((0x20, 3, 0, translated, 0))
    assert translation.farewell(0x8B) == b""


# From the device.


def test_properties_are_dropped_and_the_expiry_of_each_message_is_told() -> None:
    held = Held()
    values: dict[int, int | bytes] = {p.MESSAGE_EXPIRY: 9, p.CONTENT_TYPE: b"text/plain", p.CORRELATION_DATA: b"\0"}
    rich = publish(packet_id=1, retain=True, properties=Properties(values=values, user=((b"k", b"v"),)))
    assert held.from_device(rich, publish(b"b"), Ping()) == [publish(packet_id=1, retain=True), publish(b"b"), Ping()]
    assert held.translation.message_expiry_s == [9, None]
    held.from_device(Ping())
    assert held.translation.message_expiry_s == []


def test_aliases_stand_for_topics() -> None:
    held = Held()
    said = [aliased(b"one", 1), aliased(b"two", 2), aliased(b"", 1), aliased(b"new", 1), aliased(b"", 1)]
    topics = [each.topic for each in held.from_device(*said)]
    assert topics == [b"one", b"two", b"one", b"new", b"new"]


@pytest.mark.parametrize(
    ("packet", "problem", "code"),
    [
        pytest.param(aliased(b"a", 0), "topic alias invalid", 0x94, id="alias 0"),
        pytest.param(aliased(b"a", 3), "topic alias invalid", 0x94, id="alias beyond the maximum"),
        pytest.param(aliased(b"", 1), "protocol error", 0x82, id="unknown alias"),
        pytest.param(publish(b""), "protocol error", 0x82, id="neither a topic nor an alias"),
        pytest.param(publish(b"x" * 101), "topic too long", 0x90, id="topic too long"),
        pytest.param(publish(payload=bytes(10_000)), "packet too large", 0x95, id="packet too large"),
        pytest.param(
            publish(properties=Properties(identifiers=(1,))),
            "protocol error",
            0x82,
            id="a property that only brokers say",
        ),
        pytest.param(
            Subscribe(packet_id=1, entries=((b"a", 0),), properties=Properties(identifiers=(1,))),
            "subscription identifier",
            0xA1,
            id="subscription identifier",
        ),
        pytest.param(client(), "protocol error", 0x82, id="a second CONNECT"),
        pytest.param(Pong(), "protocol error", 0x82, id="a broker's packet"),
        pytest.param(Auth(), "protocol error", 0x82, id="AUTH without a method"),
        pytest.param(
            Disconnect(properties=Properties(values={p.SESSION_EXPIRY: 5})),
            "protocol error",
            0x82,
            id="a session that was to end with the connection is to be kept",
        ),
    ],
)
def test_what_breaks_the_rules_ends_the_connection_behind_what_was_good(
    packet: Packet, problem: str, code: int
) -> None:
    held = Held()
    assert held.from_device(publish(b"good"), packet, publish(b"late")) == [publish(b"good")]
    assert held.problem == (problem, code)
    assert held.translation.message_expiry_s == [None]
    assert held.from_device(publish(b"late")) == []
    assert held.from_broker(publish(b"late")) == []
    assert held.translation.farewell(code) == bytes((0xE0, 1, code))
    assert held.translation.farewell(code) == b""
    assert held.problem == (problem, code)


@pytest.mark.parametrize(
    ("done", "fits"),
    [
        pytest.param([], False, id="nothing acknowledged"),
        pytest.param([ack(PUBACK, 1)], True, id="PUBACK"),
        pytest.param([ack(PUBREC, 2)], False, id="PUBREC is half of it"),
        pytest.param([ack(PUBREC, 2), ack(PUBCOMP, 2)], True, id="PUBCOMP"),
        pytest.param([ack(PUBREC, 2, 0x97)], True, id="PUBREC with an error is the end of it"),
        pytest.param([ack(PUBACK, 1, 0x97)], True, id="so is PUBACK"),
        pytest.param([ack(PUBACK, 9)], False, id="an acknowledgement of something else"),
    ],
)
def test_the_receive_maximum_counts_what_is_not_acknowledged(done: list[Ack], fits: bool) -> None:
    held = Held()
    held.from_device(publish(packet_id=1), publish(packet_id=2, qos=2), publish(packet_id=3))
    held.from_device(publish(packet_id=3, duplicate=True), publish(qos=0))
    assert held.from_broker(*done, version=5) == done
    held.from_device(publish(packet_id=4))
    assert held.problem == (("", 0) if fits else ("receive maximum exceeded", 0x93))


@pytest.mark.parametrize(
    ("code", "upstream", "keeps_will"),
    [(0x00, b"\xe0\x00", False), (0x04, b"", True), (0x81, b"", True)],
)
def test_only_a_normal_disconnect_takes_the_will_back(code: int, upstream: bytes, keeps_will: bool) -> None:
    held = Held()
    assert held.translation.received(encode(Disconnect(code=code), 5)) == upstream
    assert held.translation.closes_without_disconnect is keeps_will
    assert held.translation.farewell(0x8B) == b""
    assert held.problem == ("", 0)


@pytest.mark.parametrize(
    ("before", "after", "delete_after_s"), [(30, 0, 0), (30, 99, 99), (NEVER_EXPIRES, 5, 5), (5, NEVER_EXPIRES, None)]
)
def test_disconnect_may_change_when_the_session_ends(before: int, after: int, delete_after_s: int | None) -> None:
    held = Held(client(session_expiry=before))
    held.from_device(Disconnect(properties=Properties(values={p.SESSION_EXPIRY: after})))
    assert held.translation.delete_session_after_s == delete_after_s


# Subscriptions.


def test_what_a_311_broker_cannot_do_is_refused_filter_by_filter() -> None:
    held = Held()
    asked = subscribe(5, (b"$share/g/a", 1), (b"b", 0x09), (b"c", 0x05), (b"d", 2))
    assert held.from_device(asked) == [subscribe(5, (b"b", 1), (b"d", 2))]
    assert held.answers() == []
    assert held.from_broker(Suback(packet_id=5, codes=b"\x01\x80")) == [Suback(packet_id=5, codes=b"\x9e\x01\x83\x80")]


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


# From the broker.


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


# Advice.


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
