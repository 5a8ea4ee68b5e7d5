"""One session: bytes of one side in, bytes for the other out. Only what concerns advice changes."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.limiting.credits import ClientCredits, cost_of
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.noting import Noted, Noting
from tidegate.gateway.connection.own_filters import UNANSWERED_MAX
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import FILTER_COST, PINGS_PER_S_MAX, Session
from tidegate.gateway.identity.rights import ANYTHING
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.advice import Advice
from tidegate.model.classes import DEFAULT_CLASSES
from tidegate.mqtt.client import encode_publish
from tidegate.mqtt.fields import encode_length
from tidegate.mqtt.packets import Suback, Subscribe, Unsubscribe, encode

ADVICE = b"tidegate/advice"
DOCUMENT = b'{"interval_s":2.0,"lifetime_s":10.0}'
SAID = Advice(interval_s=2.0, lifetime_s=10.0)
ADVICE_PACKET = encode_publish(ADVICE, DOCUMENT)
CONNACK, PINGREQ, PINGRESP, DISCONNECT = b"\x20\x02\x00\x00", b"\xc0\x00", b"\xd0\x00", b"\xe0\x00"


LIMITS = Limits(packet_bytes_max=10_000, topic_bytes_max=4_096, properties_max=64, keep_alive_s_max=65_535)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Held:
    """A session that is connected, with the advice and the counters it shares with others."""

    def __init__(
        self,
        *,
        connected: bool = True,
        rate_per_s: float | None = None,
        noting: Noting | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.clock = Clock()
        self.advice = AdviceInForce(self.clock)
        self.counters = Counters()
        passing = Passing(
            Hold(ClientCredits(50_000, 10_000, 0.0), bytes_max=65_536, hold_s_max=30.0),
            TopicRules(DEFAULT_CLASSES),
            Classes(DEFAULT_CLASSES, self.counters),
            self.advice,
            self.counters,
            enforces=rate_per_s is not None,
            version=4,
            tells_quota=False,
        )
        self.session = Session(4, limits, self.advice, passing, ANYTHING, noting=noting)
        if rate_per_s is not None:
            self.advice.renew(Advice(interval_s=1 / rate_per_s, lifetime_s=60), 1)
        if connected:
            assert self.session.from_broker(CONNACK) == CONNACK
            assert self.session.return_code == 0

    def from_device(self, data: bytes) -> bytes:
        return self.session.from_device(data, self.clock())

    def asks(self) -> "Held":
        assert self.from_device(subscribe(1, ADVICE)) == b""
        assert self.session.take_answer() == b"\x90\x03\x00\x01\x00"
        return self


def subscribe(packet_id: int, *filters: bytes, qos: int = 1) -> bytes:
    return encode(Subscribe(packet_id=packet_id, entries=tuple((topic, qos) for topic in filters)), 4)


def unsubscribe(packet_id: int, *filters: bytes) -> bytes:
    return encode(Unsubscribe(packet_id=packet_id, filters=filters), 4)


def puback(packet_id: int) -> bytes:
    return b"\x40\x02" + packet_id.to_bytes(2, "big")


def suback(packet_id: int, *codes: int) -> bytes:
    return encode(Suback(packet_id=packet_id, codes=bytes(codes)), 4)


@pytest.mark.parametrize(
    ("filters", "upstream", "from_broker", "to_device"),
    [
        pytest.param((b"a", ADVICE), (b"a",), suback(7, 1), suback(7, 1, 0), id="behind another"),
        pytest.param((ADVICE, b"a"), (b"a",), suback(7, 1), suback(7, 0, 1), id="before another"),
        pytest.param((b"a", ADVICE, b"b"), (b"a", b"b"), suback(7, 1, 2), suback(7, 1, 0, 2), id="between two"),
        pytest.param((ADVICE, b"a", ADVICE), (b"a",), suback(7, 128), suback(7, 0, 128, 0), id="twice, other refused"),
        pytest.param(
            (b"#", b"tidegate/#"), (b"#", b"tidegate/#"), suback(7, 0, 0), suback(7, 0, 0), id="wildcards pass"
        ),
        pytest.param(
            (b"a", b"$SYS/#", b"$share/g/a", b"$share/g/$SYS/x"),
            (b"a", b"$share/g/a"),
            suback(7, 1, 1),
            suback(7, 1, 128, 1, 128),
            id="the broker's own topics are refused",
        ),
    ],
)
def test_every_filter_gets_its_code(
    filters: tuple[bytes, ...], upstream: tuple[bytes, ...], from_broker: bytes, to_device: bytes
) -> None:
    held = Held()
    assert held.from_device(subscribe(7, *filters)) == subscribe(7, *upstream)
    assert held.session.answer == b""
    assert held.session.from_broker(PINGRESP + from_broker + PINGRESP) == PINGRESP + to_device + PINGRESP
    assert held.session.from_broker(suback(7, 1)) == suback(7, 1), "an identifier that is used again is another packet"


def test_who_asks_for_nothing_but_the_brokers_own_topics_is_answered_here_and_still_advised() -> None:
    held = Held().asks()
    assert held.from_device(subscribe(8, b"$MQTT/msgs/#")) == b""
    assert held.session.take_answer() == suback(8, 128)
    held.advice.renew(SAID, 1)
    assert held.session.from_broker(puback(1)) != puback(1)


def test_unsubscribing_takes_the_filter_out_or_is_answered_here() -> None:
    held = Held().asks()
    assert held.from_device(unsubscribe(8, ADVICE, b"a")) == unsubscribe(8, b"a")
    assert held.from_device(PINGREQ + unsubscribe(9, ADVICE) + puback(1)) == PINGREQ + puback(1)
    assert held.session.take_answer() == b"\xb0\x02\x00\x09"
    held.advice.renew(SAID, 1)
    assert held.session.from_broker(puback(1)) == puback(1)


@pytest.mark.parametrize(
    ("frame", "is_advised"),
    [
        pytest.param(puback(3), True, id="PUBACK"),
        pytest.param(b"\x70\x02\x00\x03", True, id="PUBCOMP"),
        pytest.param(PINGRESP, True, id="PINGRESP"),
        pytest.param(b"\x50\x02\x00\x03", False, id="PUBREC"),
        pytest.param(encode_publish(b"a", b"x"), False, id="PUBLISH"),
    ],
)
def test_advice_follows_an_acknowledgement(frame: bytes, is_advised: bool) -> None:
    held = Held().asks()
    held.advice.renew(SAID, 1)
    assert held.session.from_broker(frame) == frame + ADVICE_PACKET * is_advised
    assert held.counters.advised == is_advised


def test_a_revision_is_sent_once_and_a_renewed_one_again() -> None:
    held = Held().asks()
    assert held.session.from_broker(puback(1)) == puback(1), "there is no advice yet"
    held.advice.renew(SAID, 4)
    assert held.session.from_broker(puback(2) + puback(3)) == puback(2) + puback(3) + ADVICE_PACKET
    assert held.session.from_broker(puback(4)) == puback(4)
    held.advice.renew(SAID, 5)
    assert held.session.from_broker(puback(5)) == puback(5) + ADVICE_PACKET
    held.from_device(subscribe(1, ADVICE))
    assert held.session.from_broker(puback(6)) == puback(6) + ADVICE_PACKET, "who asks again has perhaps restarted"
    assert (held.counters.advised, held.counters.acknowledged) == (3, 6)


def test_a_half_received_packet_is_never_split_by_advice() -> None:
    held = Held().asks()
    held.advice.renew(SAID, 1)
    message = encode_publish(b"own", b"payload")
    assert held.session.from_broker(puback(1) + message[:4]) == puback(1) + ADVICE_PACKET
    assert held.session.from_broker(message[4:]) == message


def test_advice_lapses_on_the_gateways_clock() -> None:
    held = Held().asks()
    held.advice.renew(SAID, 1)
    held.clock.now_s = 9.9
    current = held.advice.current()
    assert current is not None
    assert current.lifetime_s == pytest.approx(0.1), "a device is told what is left"
    held.clock.now_s = 10.0
    assert held.session.from_broker(puback(1)) == puback(1)
    assert held.advice.current() is None
    held.advice.renew(SAID, 2)
    assert held.session.from_broker(puback(2)) == puback(2) + ADVICE_PACKET


def test_what_classes_are_advised_passes_with_what_is_left_of_its_lifetime() -> None:
    held = Held().asks()
    advice = Advice(interval_s=2, lifetime_s=10, classes={"alarm": 0, "telemetry": 4.5}, dead_bands={"command": 3})
    held.advice.renew(advice, 1)
    held.clock.now_s = 4.0
    packet = held.session.from_broker(puback(1)).removeprefix(puback(1))
    told = msgspec.json.decode(packet[packet.index(b"{") :], type=Advice)
    assert told == msgspec.structs.replace(advice, lifetime_s=6.0)


def test_advice_that_is_gone_is_not_sent() -> None:
    held = Held().asks()
    held.advice.renew(SAID, 1)
    held.advice.renew(None, 2)
    assert held.session.from_broker(puback(1)) == puback(1)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        pytest.param(encode_publish(ADVICE, b"x"), "forged advice", id="forged at QoS 0"),
        pytest.param(encode_publish(ADVICE, b"x", packet_id=1, retain=True), "forged advice", id="forged, retained"),
        pytest.param(encode_publish(ADVICE + b"s", b"x"), "", id="a longer topic is another topic"),
        pytest.param(encode_publish(ADVICE[:-1], b"x"), "", id="a shorter topic is another topic"),
        pytest.param(encode_publish(b"a", ADVICE), "", id="the payload may say what it likes"),
        pytest.param(encode_publish(b"telemetry/*", b"x", packet_id=1), "wildcard as a topic level", id="device *"),
        pytest.param(encode_publish(b"telemetry/>", b"x"), "wildcard as a topic level", id="device >, QoS 0"),
        pytest.param(encode_publish(b"telemetry/d/*/x", b"x"), "wildcard as a topic level", id="a level * inside"),
        pytest.param(encode_publish(b"telemetry/d/>", b"x"), "wildcard as a topic level", id="a level > at the end"),
        pytest.param(encode_publish(b"*/d", b"x"), "wildcard as a topic level", id="a level * at the start"),
        pytest.param(encode_publish(b"telemetry/a*b/c>d/**", b"x"), "", id="* and > within longer levels"),
        pytest.param(b"\x82\x02\x00\x01", "malformed SUBSCRIBE or UNSUBSCRIBE", id="no filter"),
        pytest.param(b"\x82\x07\x00\x01\x00\x05ab\x00", "malformed SUBSCRIBE or UNSUBSCRIBE", id="a cut filter"),
        pytest.param(b"\x80\x06\x00\x01\x00\x01a\x00", "malformed packet", id="wrong flags"),
        pytest.param(b"\x82\x06\x00\x01\x00\x01a\x03", "malformed SUBSCRIBE or UNSUBSCRIBE", id="QoS 3"),
        pytest.param(b"\x30\x80\x80\x04", "packet too large", id="a packet that is too large"),
        pytest.param(b"\x00\x00", "not MQTT", id="a packet type that does not exist"),
    ],
)
def test_what_a_device_may_not_send(sent: bytes, problem: str) -> None:
    session = Held().session
    forwarded = session.from_device(sent, 0.0)
    assert (session.problem, forwarded) == (problem, b"" if problem else sent)


@pytest.mark.parametrize("packet", [subscribe, unsubscribe])
def test_a_giant_subscription_is_not_even_looked_at(packet: Callable[..., bytes]) -> None:
    held = Held(limits=msgspec.structs.replace(LIMITS, packet_bytes_max=200_000))
    assert held.from_device(packet(7, *[b"a/%d" % number for number in range(9_000)])) == b""
    assert (held.session.problem, held.session.code) == ("SUBSCRIBE too large", 0x95)


def test_filters_cost_credits_like_publishes() -> None:
    held = Held(limits=msgspec.structs.replace(LIMITS, packet_bytes_max=200_000))
    several = subscribe(7, *[b"%d" % number for number in range(1_000)])
    for _ in range(50_000 // (FILTER_COST * 1_000)):
        held.from_device(several)
        assert not held.session.problem
    held.from_device(several)
    assert (held.session.problem, held.session.code) == ("quota exceeded", 0x97)


def test_unanswered_subscriptions_are_bounded() -> None:
    session = Held().session
    for packet_id in range(1, UNANSWERED_MAX + 1):
        session.from_device(subscribe(packet_id, b"a", ADVICE), 0.0)
    assert session.problem == ""
    session.from_device(subscribe(UNANSWERED_MAX + 1, b"a", ADVICE), 0.0)
    assert session.problem == "too many unanswered subscriptions"


def test_a_broker_that_does_not_begin_with_connack_is_none() -> None:
    session = Held(connected=False).session
    session.from_broker(b"\x10\x02\x00\x00")
    assert (session.problem, session.return_code) == ("broken by the broker", None)


def test_a_chunk_that_says_nothing_of_advice_passes_as_it_is() -> None:
    session = Held().session
    chunk = encode_publish(b"telemetry/d", b"x" * 50, packet_id=1) * 20
    assert session.from_device(chunk, 0.0) is chunk
    answers = puback(1) * 20
    assert session.from_broker(answers) is answers


filters_given = st.lists(st.sampled_from([b"a", b"b/#", ADVICE]), min_size=1, max_size=4)
device_packets = st.one_of(
    st.builds(encode_publish, st.just(b"telemetry/d"), st.binary(max_size=200), packet_id=st.integers(1, 9)),
    st.builds(lambda filters, number: subscribe(number, *filters), filters_given, st.integers(1, 9)),
    st.builds(lambda filters, number: unsubscribe(number, *filters), filters_given, st.integers(1, 9)),
)


@given(st.lists(device_packets, max_size=8), st.lists(st.integers(1, 60), max_size=40))
def test_what_a_broker_sees_does_not_depend_on_how_it_was_cut(sent: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(sent)
    whole, pieces = Held().session, Held().session
    expected = whole.from_device(stream, 0.0)
    found, place = b"", 0
    for size in [*sizes, len(stream)]:
        found += pieces.from_device(stream[place : place + size], 0.0)
        place += size
    assert (found, pieces.answer, pieces.problem) == (expected, whole.answer, whole.problem)
    assert ADVICE not in found


def test_the_gateways_own_pings_are_answered_to_nobody_else() -> None:
    held = Held()
    assert held.session.ping() == PINGREQ
    assert held.from_device(PINGREQ) == PINGREQ
    assert held.session.from_broker(PINGRESP + puback(1)) == puback(1), "the first answer is the gateway's own"
    assert held.session.from_broker(PINGRESP) == PINGRESP


def test_what_waits_is_counted_when_it_goes_on_and_keeps_its_order() -> None:
    held = Held(rate_per_s=1.0)
    sent = [encode_publish(b"telemetry/d", b"%d" % number, packet_id=number) for number in range(1, 6)]
    passed = held.from_device(b"".join(sent) + PINGREQ + DISCONNECT)
    assert passed == b"".join(sent[:3]), "three may come at once"
    assert (held.session.attention, held.session.take_answer()) == (True, PINGRESP)
    assert (held.counters.publishes, held.counters.held, held.counters.held_total) == (3, 2, 2)
    released = b""
    for second in range(1, 4):
        held.clock.now_s = float(second)
        released += held.session.released(held.clock.now_s)
    assert released == b"".join(sent[3:]) + DISCONNECT, "the farewell waits for what was said before it"
    assert (held.counters.publishes, held.counters.held) == (5, 0)


def test_pings_without_end_are_an_offence() -> None:
    held = Held()
    for _ in range(PINGS_PER_S_MAX):
        held.from_device(PINGREQ)
    assert held.session.problem == ""
    held.session.look()
    held.from_device(PINGREQ * PINGS_PER_S_MAX)
    assert held.session.problem == ""
    held.from_device(PINGREQ)
    assert (held.session.problem, held.session.code) == ("too many pings", 0x96)


@pytest.mark.parametrize("packet_bytes", [100, 4_095, 4_096, 4_098, 4_099, 8_191, 8_192, 8_195])
def test_a_publish_costs_the_same_whichever_way_it_passes(packet_bytes: int) -> None:
    """First on its topic or like the one before, whole or in pieces, alone or beside others, taken apart or not."""

    def cost(held: Held, *chunks: bytes) -> float:
        credits = held.session.passing.hold.credits
        before = credits.state(0.0)[0]
        for chunk in chunks:
            held.from_device(chunk)
        return before - credits.state(0.0)[0]

    body_bytes = next(size for size in range(packet_bytes) if 1 + len(encode_length(size)) + size == packet_bytes)
    topic_and_id = 2 + len(b"telemetry/d") + 2
    packet = encode_publish(b"telemetry/d", bytes(body_bytes - topic_and_id), packet_id=1)
    held, expected = Held(), cost_of(packet_bytes)
    assert cost(held, packet) == expected, "the first"
    assert cost(held, packet) == expected, "like the one before"
    assert cost(held, packet[:50], packet[50:]) == expected, "in pieces"
    assert cost(held, packet + packet) == 2 * expected, "two at once"
    assert cost(held, packet + PINGREQ) == expected, "beside another packet"
    assert cost(held, packet + subscribe(1, b"a")) == expected + FILTER_COST, "in a chunk that is taken apart"


def reading(packet_id: int, seq: int) -> bytes:
    return encode_publish(b"telemetry/d-1", b'{"boot":1,"seq":%d,"value":1}' % seq, packet_id=packet_id)


def test_what_passes_is_noted_when_it_is_acknowledged() -> None:
    noted = Noted()
    held = Held(noting=Noting(noted, 4))
    chunk = reading(1, 10) + reading(2, 11)
    assert held.from_device(chunk[:30]) == b""
    assert held.from_device(chunk[30:]) == chunk
    assert held.from_device(reading(3, 12) + DISCONNECT) == reading(3, 12) + DISCONNECT, "taken apart"
    held.advice.renew(SAID, 1)
    assert held.session.from_broker(puback(1)[:3]) == b""
    assert held.session.from_broker(puback(1)[3:] + puback(3)) == puback(1) + puback(3)
    assert noted.take()[0].all_runs() == [(1, 10, 10), (1, 12, 12)]
    held.session.forget()
    assert noted.waiting_bytes == 0


def test_what_waits_here_is_noted_when_it_has_gone_on_and_was_acknowledged() -> None:
    noted = Noted()
    held = Held(rate_per_s=1.0, noting=Noting(noted, 4))
    passed = held.from_device(b"".join(reading(number, number) for number in range(1, 6)))
    waiting = held.session.passing.hold.waiting
    assert waiting > 0
    for number in range(1, 6):
        held.session.from_broker(puback(number))
    assert noted.noted == 5 - waiting, "what has not gone on cannot have been acknowledged"
    held.clock.now_s += 20
    released = held.session.released(held.clock())
    assert passed + released == b"".join(reading(number, number) for number in range(1, 6))
    for number in range(1, 6):
        held.session.from_broker(puback(number))
    assert noted.take()[0].all_runs() == [(1, 1, 5)]
