"""However an MQTT 5 conversation is cut, its translation is the same; and what comes out is always valid MQTT."""

import io

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.gateway.connection.connect_plan import Limits, plan_connect
from tidegate.gateway.connection.translation import Translation
from tidegate.mqtt import properties as p
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    Ack,
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

LIMITS = Limits(
    packet_bytes_max=5_000,
    topic_bytes_max=200,
    properties_max=8,
    keep_alive_s_max=600,
    receive_max=4,
    topic_alias_max=3,
)
LEVELS = st.sampled_from(["", "a", "b", "$a", "é"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=3).map("/".join).filter(bool).map(str.encode)
FILTERS = st.builds(
    lambda levels, last: "/".join([*levels, *last]),
    st.lists(LEVELS | st.just("+"), max_size=2),
    st.sampled_from([["#"], ["+"], ["a"], ["b", "a"]]),
).map(str.encode)
SHARED = FILTERS.map(lambda each: b"$share/g/" + each)
IDS = st.integers(1, 6)
WORDS = st.text("xyz", max_size=5).map(str.encode)


def held(**values: st.SearchStrategy[int | bytes]) -> st.SearchStrategy[Properties]:
    known = {getattr(p, name.upper()): value for name, value in values.items()}
    return st.builds(
        lambda chosen, user: Properties(values=chosen, user=tuple(user)),
        st.fixed_dictionaries({}, optional=known),
        st.lists(st.tuples(WORDS, WORDS), max_size=2),
    )


def publishes(properties: st.SearchStrategy[Properties]) -> st.SearchStrategy[Publish]:
    def build(topic: bytes, payload: bytes, qos: int, packet_id: int, flags: int, properties: Properties) -> Publish:
        return Publish(
            topic=topic,
            payload=payload,
            qos=qos,
            packet_id=packet_id if qos else 0,
            retain=bool(flags & 1),
            duplicate=bool(flags & 2 and qos),
            properties=properties,
        )

    return st.builds(build, TOPICS, st.binary(max_size=150), st.integers(0, 2), IDS, st.integers(0, 3), properties)


PLAIN = {"message_expiry": st.integers(0, NEVER_EXPIRES), "content_type": WORDS, "correlation_data": WORDS}
OF_MESSAGES = held(**PLAIN, topic_alias=st.integers(1, 4))
ALIASED = st.builds(
    lambda alias: Publish(topic=b"", payload=b"", properties=Properties(values={p.TOPIC_ALIAS: alias})),
    st.integers(1, 3),
)
ACKS = st.builds(
    lambda kind_and_code, packet_id, properties: Ack(
        kind=kind_and_code[0], packet_id=packet_id, code=kind_and_code[1], properties=properties
    ),
    st.sampled_from(
        [(PUBACK, 0), (PUBACK, 0x97), (PUBREC, 0), (PUBREC, 0x80), (PUBREL, 0), (PUBCOMP, 0), (PUBCOMP, 0x92)]
    ),
    IDS,
    held(reason_string=WORDS),
)
OPTIONS = st.builds(
    lambda qos, bits, handling: qos | bits | handling, *map(st.sampled_from, ([0, 1, 2], [0, 4, 8], [0, 16, 32]))
)
SUBSCRIBES = st.builds(
    lambda packet_id, entries: Subscribe(packet_id=packet_id, entries=tuple(entries)),
    IDS,
    st.lists(st.tuples(FILTERS, OPTIONS) | st.tuples(SHARED, st.just(1)), min_size=1, max_size=4),
)
UNSUBSCRIBES = st.builds(
    lambda packet_id, filters: Unsubscribe(packet_id=packet_id, filters=tuple(filters)),
    IDS,
    st.lists(FILTERS | SHARED, min_size=1, max_size=4),
)
OF_DEVICES = publishes(OF_MESSAGES) | ALIASED | ACKS | SUBSCRIBES | UNSUBSCRIBES | st.just(Ping())
OF_BROKERS = st.one_of(
    publishes(st.just(p.EMPTY)),
    ACKS.map(lambda ack: Ack(kind=ack.kind, packet_id=ack.packet_id)),
    st.builds(
        lambda packet_id, codes: Suback(packet_id=packet_id, codes=bytes(codes)),
        IDS,
        st.lists(st.sampled_from([0, 1, 2, 0x80]), min_size=1, max_size=4),
    ),
    st.builds(lambda packet_id: Unsuback(packet_id=packet_id), IDS),
    st.just(Pong()),
)
CONNECTS = st.builds(
    lambda client_id, clean, keep_alive_s, will, user, password, properties: Connect(
        version=5,
        client_id=client_id,
        clean=clean,
        keep_alive_s=keep_alive_s,
        will=will,
        user=user,
        password=password,
        properties=properties,
    ),
    WORDS,
    st.booleans(),
    st.integers(0, 65_535),
    st.none()
    | st.builds(
        Will,
        topic=TOPICS,
        payload=WORDS,
        qos=st.integers(0, 2),
        retain=st.booleans(),
        properties=held(will_delay=st.integers(0, 99)),
    ),
    st.none() | WORDS,
    st.none() | WORDS,
    held(
        session_expiry=st.sampled_from([0, 1, NEVER_EXPIRES]),
        receive_max=st.integers(1, 3),
        packet_bytes_max=st.integers(1, 300),
        request_problem_information=st.integers(0, 1),
    ),
)
STEPS = st.lists(st.tuples(st.just(True), OF_DEVICES) | st.tuples(st.just(False), OF_BROKERS), max_size=20)
CUTS = st.lists(st.integers(0, 30), max_size=60)


def begun(connect: Connect, *, is_connected: bool = True) -> Translation:
    translation = Translation(plan_connect(connect, assigned=b"", limits=LIMITS), LIMITS, lambda: b'{"interval_s":1}')
    if is_connected:
        translation.wrap(encode(Connack(session_present=False, code=0), 4))
    return translation


def packets_of(data: bytes, version: int) -> list[Packet]:
    return [parse(first, data[body:end], version, properties_max=8) for first, body, end in frames_of(data)]


def in_pieces(translation: Translation, data: bytes, sizes: list[int], *, from_device: bool) -> tuple[object, ...]:
    stream, passed, answers, upstream, expiries = io.BytesIO(data), b"", b"", b"", []
    for size in [*sizes, -1]:
        chunk = stream.read(size)
        passed += translation.received(chunk) if from_device else translation.wrap(chunk)
        answers += translation.answer()
        upstream += translation.answer_upstream()
        expiries += translation.message_expiry_s if from_device else []
    ended = translation.problem, translation.code, translation.closes_without_disconnect
    return passed, answers, upstream, expiries, ended, translation.dropped, translation.delete_session_after_s


@settings(max_examples=50)
@given(CONNECTS, st.lists(OF_DEVICES | st.just(Disconnect(code=4)), max_size=8), st.binary(max_size=20), CUTS)
def test_a_device_cut_anywhere_is_translated_the_same(
    connect: Connect, packets: list[Packet], junk: bytes, sizes: list[int]
) -> None:
    data = b"".join(encode(each, 5) for each in packets) + junk
    whole = in_pieces(begun(connect), data, [], from_device=True)
    assert in_pieces(begun(connect), data, sizes, from_device=True) == whole
    assert in_pieces(begun(connect), data, [1] * len(data), from_device=True) == whole


@settings(max_examples=50)
@given(CONNECTS, st.lists(OF_BROKERS, max_size=8), st.binary(max_size=20), CUTS)
def test_a_broker_cut_anywhere_is_translated_the_same(
    connect: Connect, packets: list[Packet], junk: bytes, sizes: list[int]
) -> None:
    data = encode(Connack(session_present=False, code=0), 4) + b"".join(encode(each, 4) for each in packets) + junk
    whole = in_pieces(begun(connect, is_connected=False), data, [], from_device=False)
    assert in_pieces(begun(connect, is_connected=False), data, sizes, from_device=False) == whole
    assert in_pieces(begun(connect, is_connected=False), data, [1] * len(data), from_device=False) == whole


@settings(max_examples=50)
@given(CONNECTS, STEPS)
def test_any_conversation_is_valid_on_both_sides(connect: Connect, steps: list[tuple[bool, Packet]]) -> None:
    """What the broker hears is 3.1.1, what the device hears is MQTT 5 within the limits that it named."""
    translation = begun(connect)
    bytes_max = connect.properties.number(p.PACKET_BYTES_MAX, 2**28)
    receive_max = connect.properties.number(p.RECEIVE_MAX, 65_535)
    unacknowledged: set[int] = set()
    for is_device, packet in steps:
        if is_device:
            upstream = packets_of(translation.received(encode(packet, 5)), 4)
            publishes_sent = [each for each in upstream if isinstance(each, Publish)]
            assert len(publishes_sent) == len(translation.message_expiry_s)
            if isinstance(packet, Ack) and (packet.kind in (PUBACK, PUBCOMP) or packet.code >= 0x80):
                unacknowledged.discard(packet.packet_id)
            heard = translation.answer()
        else:
            heard = translation.wrap(encode(packet, 4)) + translation.answer()
        assert all(isinstance(each, Ack) for each in packets_of(translation.answer_upstream(), 4))
        for each in packets_of(heard, 5):
            assert len(encode(each, 5)) <= bytes_max
            if isinstance(each, Publish) and each.qos:
                unacknowledged.add(each.packet_id)
        assert len(unacknowledged) <= receive_max
        assert bool(translation.problem) == bool(translation.code)


@settings(max_examples=50)
@given(CONNECTS, st.lists(publishes(held(**PLAIN)), max_size=4))
def test_messages_arrive_as_they_were_sent_but_for_their_properties(connect: Connect, sent: list[Publish]) -> None:
    translation = begun(msgspec.structs.replace(connect, properties=p.EMPTY))
    arrived = packets_of(translation.received(b"".join(encode(each, 5) for each in sent)), 4)
    assert arrived == [msgspec.structs.replace(each, properties=p.EMPTY) for each in sent]
    assert translation.message_expiry_s == [each.properties.values.get(p.MESSAGE_EXPIRY) for each in sent]


@given(CONNECTS)
def test_every_connect_has_a_plan_that_311_understands(connect: Connect) -> None:
    named = msgspec.structs.replace(connect, client_id=connect.client_id or b"x")
    plan = plan_connect(named, assigned=b"" if connect.client_id else b"x", limits=LIMITS)
    (upstream,), (deletion,) = packets_of(plan.packet, 4), packets_of(plan.deletion, 4)
    assert upstream.version == deletion.version == 4
    assert upstream.client_id == deletion.client_id == (connect.client_id or b"x")
    assert upstream.clean is (connect.clean and connect.properties.number(p.SESSION_EXPIRY, 0) == 0)
    assert 0 < upstream.keep_alive_s <= LIMITS.keep_alive_s_max
