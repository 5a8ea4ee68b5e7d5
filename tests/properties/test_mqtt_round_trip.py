"""MQTT packets of every kind and version: what is written is read again, and rubbish raises nothing but a violation."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mqtt import packets, properties
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import Packet, encode, parse
from tidegate.mqtt.properties import EMPTY, Properties
from tidegate.mqtt.violations import Violation

PROPERTIES_MAX = 40

versions = st.sampled_from((3, 4, 5))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12).map(str.encode)
topics = st.text(st.characters(exclude_characters="\0+#", exclude_categories=["Cs"]), min_size=1, max_size=12).map(
    str.encode
)
filters = st.one_of(topics, topics.map(lambda topic: topic + b"/#"), st.sampled_from((b"#", b"+", b"a/+/b", b"/")))
filters = filters.filter(lambda found: not found.startswith(b"$share"))
binaries = st.binary(max_size=12)
packet_ids = st.integers(1, 65_535)
flags = st.booleans()
VALUES: dict[int, st.SearchStrategy[int | bytes]] = {
    properties.PAYLOAD_FORMAT: st.integers(0, 1),
    properties.MESSAGE_EXPIRY: st.integers(0, 2**32 - 1),
    properties.CONTENT_TYPE: texts,
    properties.RESPONSE_TOPIC: topics,
    properties.CORRELATION_DATA: binaries,
    properties.SESSION_EXPIRY: st.integers(0, 2**32 - 1),
    properties.ASSIGNED_CLIENT_ID: texts,
    properties.SERVER_KEEP_ALIVE: st.integers(0, 65_535),
    properties.AUTHENTICATION_METHOD: texts,
    properties.AUTHENTICATION_DATA: binaries,
    properties.REQUEST_PROBLEM_INFORMATION: st.integers(0, 1),
    properties.WILL_DELAY: st.integers(0, 2**32 - 1),
    properties.REQUEST_RESPONSE_INFORMATION: st.integers(0, 1),
    properties.RESPONSE_INFORMATION: texts,
    properties.SERVER_REFERENCE: texts,
    properties.REASON_STRING: texts,
    properties.RECEIVE_MAX: st.integers(1, 65_535),
    properties.TOPIC_ALIAS_MAX: st.integers(0, 65_535),
    properties.TOPIC_ALIAS: st.integers(1, 65_535),
    properties.QOS_MAX: st.integers(0, 1),
    properties.RETAIN_AVAILABLE: st.integers(0, 1),
    properties.PACKET_BYTES_MAX: st.integers(1, 2**32 - 1),
    properties.WILDCARDS_AVAILABLE: st.integers(0, 1),
    properties.SUBSCRIPTION_IDENTIFIERS_AVAILABLE: st.integers(0, 1),
    properties.SHARED_AVAILABLE: st.integers(0, 1),
}


def held(version: int, allowed: frozenset[int], identifiers_max: int = 0) -> st.SearchStrategy[Properties]:
    if version < 5:
        return st.just(EMPTY)
    return st.builds(
        Properties,
        values=st.fixed_dictionaries({}, optional={key: VALUES[key] for key in VALUES if key in allowed}),
        user=st.lists(st.tuples(texts, texts), max_size=4).map(tuple),
        identifiers=st.lists(st.integers(1, 268_435_455), max_size=identifiers_max).map(tuple),
    )


def connects(version: int) -> st.SearchStrategy[Packet]:
    wills = st.builds(
        packets.Will,
        topic=topics,
        payload=binaries,
        qos=st.integers(0, 2),
        retain=flags,
        properties=held(version, properties.IN_WILL),
    )
    return st.builds(
        packets.Connect,
        version=st.just(version),
        client_id=texts.filter(bool),
        clean=flags,
        keep_alive_s=st.integers(0, 65_535),
        will=st.none() | wills,
        user=texts,
        password=st.none() | binaries,
        properties=held(version, properties.IN_CONNECT).filter(
            lambda said: (
                properties.AUTHENTICATION_DATA not in said.values or properties.AUTHENTICATION_METHOD in said.values
            )
        ),
    )


def publishes(version: int) -> st.SearchStrategy[Packet]:
    said = held(version, properties.IN_PUBLISH, identifiers_max=3)
    ordinary = {"topic": topics, "payload": st.binary(max_size=200), "retain": flags, "properties": said}
    at_qos_0 = st.builds(packets.Publish, **ordinary)
    others = st.builds(packets.Publish, **ordinary, qos=st.integers(1, 2), duplicate=flags, packet_id=packet_ids)
    return at_qos_0 | others


def subscriptions(version: int) -> st.SearchStrategy[Packet]:
    options = [0, 1, 2] if version < 5 else [qos | bits << 2 for qos in range(3) for bits in range(12)]
    return st.builds(
        packets.Subscribe,
        packet_id=packet_ids,
        entries=st.lists(st.tuples(filters, st.sampled_from(options)), min_size=1, max_size=4).map(tuple),
        properties=held(version, properties.IN_SUBSCRIBE, identifiers_max=1),
    ) | st.builds(
        packets.Unsubscribe,
        packet_id=packet_ids,
        filters=st.lists(filters, min_size=1, max_size=4).map(tuple),
        properties=held(version, properties.IN_UNSUBSCRIBE),
    )


def answers(version: int) -> st.SearchStrategy[Packet]:
    said = held(version, properties.IN_ACKNOWLEDGEMENT)
    codes = [0, 0x80] if version < 5 else [0, 0x80, 0x87, 0x91]
    several = st.lists(st.sampled_from(codes), min_size=1, max_size=4).map(bytes)
    acknowledgements = st.builds(
        packets.Ack,
        kind=st.sampled_from((packets.PUBACK, packets.PUBREC)),
        packet_id=packet_ids,
        code=st.sampled_from([0] if version < 5 else [0, 0x10, 0x97]),
        properties=said,
    )
    releases = st.builds(
        packets.Ack,
        kind=st.sampled_from((packets.PUBREL, packets.PUBCOMP)),
        packet_id=packet_ids,
        code=st.sampled_from([0] if version < 5 else [0, 0x92]),
        properties=said,
    )
    return st.one_of(
        acknowledgements,
        releases,
        st.builds(packets.Suback, packet_id=packet_ids, codes=several, properties=said),
        st.builds(
            packets.Unsuback, packet_id=packet_ids, codes=several if version == 5 else st.just(b""), properties=said
        ),
    )


def farewells(version: int) -> st.SearchStrategy[Packet]:
    refusals = st.sampled_from([1, 5] if version < 5 else [0x81, 0x87, 0x9F])
    said = held(version, properties.IN_CONNACK)
    found = [
        st.builds(
            packets.Connack, session_present=flags if version > 3 else st.just(False), code=st.just(0), properties=said
        ),
        st.builds(packets.Connack, session_present=st.just(False), code=refusals, properties=said),
        st.builds(packets.Ping),
        st.builds(packets.Pong),
        st.builds(
            packets.Disconnect,
            code=st.sampled_from([0] if version < 5 else [0, 0x04, 0x8E]),
            properties=held(version, properties.IN_DISCONNECT),
        ),
    ]
    if version == 5:
        method = held(5, properties.IN_AUTH).filter(lambda said: properties.AUTHENTICATION_METHOD in said.values)
        found.append(st.builds(packets.Auth, code=st.sampled_from((0x00, 0x18, 0x19)), properties=method))
    return st.one_of(found)


def of(version: int) -> st.SearchStrategy[tuple[int, Packet]]:
    every = st.one_of([kind(version) for kind in (connects, publishes, subscriptions, answers, farewells)])
    return every.map(lambda packet: (version, packet))


any_packet = st.one_of([of(version) for version in (3, 4, 5)])


@given(any_packet)
def test_what_is_written_is_read_again(given_packet: tuple[int, Packet]) -> None:
    version, packet = given_packet
    written = encode(packet, version)
    ((first, body, end),) = frames_of(written)
    assert end == len(written)
    assert parse(first, written[body:end], version, properties_max=PROPERTIES_MAX) == packet


@given(any_packet, st.data())
def test_a_packet_that_is_cut_or_bent_is_refused_or_is_another_packet(
    given_packet: tuple[int, Packet], data: st.DataObject
) -> None:
    version, packet = given_packet
    written = bytearray(encode(packet, version))
    ((first, body, _),) = frames_of(bytes(written))
    place = data.draw(st.integers(body, len(written)))
    bent = (
        bytes(written[body:place])
        + data.draw(st.binary(max_size=3))
        + bytes(written[place + data.draw(st.integers(0, 2)) :])
    )
    try:
        found = parse(first, bent, version, properties_max=PROPERTIES_MAX)
    except Violation:
        return
    again = encode(found, version)
    ((first, body, _),) = frames_of(again)
    assert parse(first, again[body:], version, properties_max=PROPERTIES_MAX) == found


@given(st.integers(0, 255), st.binary(max_size=80), versions)
def test_rubbish_raises_nothing_but_a_violation(first: int, body: bytes, version: int) -> None:
    with contextlib.suppress(Violation):
        assert encode(parse(first, body, version, properties_max=PROPERTIES_MAX), version)


@given(st.integers(1, 30), st.integers(1, 30))
def test_properties_are_counted(many: int, allowed: int) -> None:
    said = Properties(user=((b"k", b"v"),) * many)
    written = encode(packets.Publish(topic=b"t", payload=b"", properties=said), 5)
    ((first, body, end),) = frames_of(written)
    if many <= allowed:
        assert parse(first, written[body:end], 5, properties_max=allowed).properties == said  # type: ignore[union-attr]
    else:
        with pytest.raises(Violation) as caught:
            parse(first, written[body:end], 5, properties_max=allowed)
        assert (caught.value.code, caught.value.reason) == (0x97, "too many properties")
