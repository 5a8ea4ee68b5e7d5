"""What an MQTT 5 client says, and what a 3.1.1 broker hears of it."""

import pytest
from translating import Held, ack, aliased, client, publish

from tidegate.gateway.identity.rights import AccessRules
from tidegate.model.identity import Access
from tidegate.mqtt import properties as p
from tidegate.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    Ack,
    Auth,
    Disconnect,
    Packet,
    Ping,
    Pong,
    Subscribe,
    encode,
)
from tidegate.mqtt.properties import NEVER_EXPIRES, Properties


def test_properties_are_dropped_and_the_expiry_of_each_message_is_told() -> None:
    held = Held()
    values: dict[int, int | bytes] = {p.MESSAGE_EXPIRY: 9, p.CONTENT_TYPE: b"text/plain", p.CORRELATION_DATA: b"\0"}
    rich = publish(packet_id=1, retain=True, properties=Properties(values=values, user=((b"k", b"v"),)))
    assert held.from_device(rich, publish(b"b"), Ping()) == [publish(packet_id=1, retain=True), publish(b"b"), Ping()]
    assert held.translation.message_expiry_s == [9, None]
    held.from_device(Ping())
    assert held.translation.message_expiry_s == []


@pytest.mark.parametrize(
    ("wants", "words"),
    [
        pytest.param({}, True, id="one that says nothing about it"),
        pytest.param({"request_problem_information": 0}, False, id="one that wants no sentences"),
        pytest.param({"packet_bytes_max": 20}, False, id="one that takes small packets alone"),
    ],
)
def test_a_publish_that_is_not_its_own_is_refused_in_as_many_words_as_a_client_takes(
    wants: dict[str, int], words: bool
) -> None:
    held = Held(client(**wants), rights=AccessRules(Access()).rights_of_device("pump-7"))
    assert held.from_device(publish(b"telemetry/other", packet_id=3), publish(b"telemetry/other")) == []
    (answer,) = held.answers()
    assert isinstance(answer, Ack)
    assert (answer.kind, answer.packet_id, answer.code) == (PUBACK, 3, 0x87)
    assert (p.REASON_STRING in answer.properties.values) == words


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
        pytest.param(
            publish(b"telemetry/*"), "wildcard as a topic level", 0x90, id="a level that is a wildcard to NATS"
        ),
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
