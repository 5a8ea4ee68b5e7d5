"""The first packet of a connection: what is read from it, what is refused and how, and what is never shown."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connecting import terms
from tidegate.gateway.connection.introducing import Introduction, introduce
from tidegate.gateway.connection.opening import Opened, Opening, Refusal, connack_refusing
from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.identity.rights import ANYTHING
from tidegate.gateway.identity.verdicts import Accepted
from tidegate.mqtt import client as device
from tidegate.mqtt import properties
from tidegate.mqtt.fields import encode_frame
from tidegate.mqtt.packets import CONNECT, Connect, Will, encode, parse
from tidegate.mqtt.properties import NEVER_EXPIRES, Properties
from tidegate.mqtt.violations import Violation

MALFORMED_5 = b"\x20\x03\x00\x81\x00"
SECRETS = (b"the-user", b"the-password", b"the-will", b"the-proof")


def text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def body(flags: int, *fields: bytes, name: bytes = b"MQTT", level: int = 4, said: bytes = b"") -> bytes:
    return text(name) + bytes((level, flags, 0, 60)) + said + b"".join(text(field) for field in fields)


def body_5(flags: int, *fields: bytes, said: bytes = b"\x00") -> bytes:
    return body(flags, *fields, level=5, said=said)


def opened(given_body: bytes) -> Opened | Refusal | None:
    return Opening(100_000).receive(encode_frame(CONNECT, given_body))


def introduced(outcome: Opened | Refusal | None) -> Introduction:
    """To a broker that judges the client itself."""
    assert isinstance(outcome, Opened)
    client = Accepted(name="d", method="broker", rights=ANYTHING, passes_credentials=True, keeps_identifier=True)
    return introduce(outcome.said, outcome.packet, client, terms())


def known(given_body: bytes) -> ConnectSummary:
    return introduced(opened(given_body)).connect


@pytest.mark.parametrize(
    ("given_body", "reason", "answer"),
    [
        pytest.param(b"", "malformed CONNECT", b"", id="nothing"),
        pytest.param(b"\x00\x04MQ", "malformed CONNECT", b"", id="a name that is cut off"),
        pytest.param(b"\x00\x04MQTT\x04\x02", "malformed CONNECT", b"", id="no keep-alive"),
        pytest.param(body(0x02), "malformed CONNECT", b"", id="no client identifier"),
        pytest.param(body(0x02, b"d") + b"x", "malformed CONNECT", b"", id="a byte too many"),
        pytest.param(body(0x03, b"d"), "malformed CONNECT", b"", id="the reserved flag"),
        pytest.param(body(0x0A, b"d"), "malformed CONNECT", b"", id="a will's QoS without a will"),
        pytest.param(body(0x22, b"d"), "malformed CONNECT", b"", id="a retained will without a will"),
        pytest.param(body(0x1E, b"d", b"t", b"m"), "malformed CONNECT", b"", id="a will at QoS 3"),
        pytest.param(body(0x06, b"d", b"t"), "malformed CONNECT", b"", id="a will without a message"),
        pytest.param(body(0x06, b"d", b"t/#", b"m"), "malformed CONNECT", b"", id="a will on many topics"),
        pytest.param(body(0x42, b"d", b"p"), "malformed CONNECT", b"", id="a password without a user"),
        pytest.param(body(0x02, b"\xff"), "malformed CONNECT", b"", id="a client identifier that is not UTF-8"),
        pytest.param(body(0x02, b"a\0b"), "malformed CONNECT", b"", id="a client identifier with NUL"),
        pytest.param(body(0x00, b""), "no client identifier", b"\x20\x02\x00\x02", id="a session of nobody"),
        pytest.param(
            body(0x02, b"", name=b"MQIsdp", level=3),
            "no client identifier",
            b"\x20\x02\x00\x02",
            id="MQTT 3.1 always wants a client identifier",
        ),
        pytest.param(body(0x06, b"d", b"tidegate/advice", b"m"), "forged advice", b"", id="advice as a last will"),
        pytest.param(
            body_5(0x06, b"d", said=b"\x00") + b"\x00" + text(b"tidegate/advice") + text(b"m"),
            "forged advice",
            b"\x20\x03\x00\x90\x00",
            id="advice as a last will in MQTT 5",
        ),
        pytest.param(
            body(0x06, b"d", b"t/*", b"m"), "wildcard as a topic level", b"", id="a will on a wildcard of NATS"
        ),
        pytest.param(
            body_5(0x06, b"d", said=b"\x00") + b"\x00" + text(b"telemetry/>/x") + text(b"m"),
            "wildcard as a topic level",
            b"\x20\x03\x00\x90\x00",
            id="a will on a wildcard of NATS in MQTT 5",
        ),
        pytest.param(
            body(0x02, b"d", level=6), "unknown protocol", b"\x20\x02\x00\x01", id="a version that does not exist"
        ),
        pytest.param(body(0x02, b"d", level=2), "unknown protocol", b"\x20\x02\x00\x01", id="a version of long ago"),
        pytest.param(
            body(0x02, b"d", name=b"MQIsdp"),
            "unknown protocol",
            b"\x20\x02\x00\x01",
            id="the old name with the new version",
        ),
        pytest.param(body(0x02, b"d", name=b"AMQP"), "unknown protocol", b"", id="a protocol that is none of ours"),
        pytest.param(body_5(0x03, b"d"), "malformed CONNECT", MALFORMED_5, id="MQTT 5 with the reserved flag"),
        pytest.param(body_5(0x02, b"\xff"), "malformed CONNECT", MALFORMED_5, id="MQTT 5 without UTF-8"),
        pytest.param(
            body_5(0x02, b"d", said=b"\x04\x21\x00\x01"), "malformed CONNECT", MALFORMED_5, id="properties too short"
        ),
        pytest.param(
            body_5(0x02, b"d", said=b"\x06\x21\x00\x01\x21\x00\x01"),
            "malformed CONNECT",
            b"\x20\x03\x00\x82\x00",
            id="a property twice",
        ),
        pytest.param(
            body_5(0x02, b"d", said=b"\x03\x21\x00\x00"),
            "malformed CONNECT",
            b"\x20\x03\x00\x82\x00",
            id="a receive maximum of nothing",
        ),
        pytest.param(
            body_5(0x02, b"d", said=b"\x04\x16\x00\x01x"),
            "malformed CONNECT",
            b"\x20\x03\x00\x82\x00",
            id="proof without a method",
        ),
        pytest.param(
            body_5(0x02, b"d", said=b"\xc7\x03" + b"\x26\x00\x01a\x00\x01b" * 65),
            "too many properties",
            b"\x20\x03\x00\x97\x00",
            id="more properties than are taken",
        ),
    ],
)
def test_a_bad_connect_is_refused_in_the_words_of_its_version(given_body: bytes, reason: str, answer: bytes) -> None:
    assert opened(given_body) == Refusal(reason, answer)


@pytest.mark.parametrize(
    ("given_body", "version", "client_id", "clean", "will_topic"),
    [
        pytest.param(body(0x02, b"d"), 4, "d", True, None, id="the least there is"),
        pytest.param(body(0x02, b""), 4, "", True, None, id="a session without a name ends with its connection"),
        pytest.param(body(0xCE, b"d", b"w/t", b"m", b"u", b"p"), 4, "d", True, "w/t", id="everything"),
        pytest.param(body(0x02, b"d", name=b"MQIsdp", level=3), 3, "d", True, None, id="MQTT 3.1"),
        pytest.param(body(0x02, b"d" * 30, name=b"MQIsdp", level=3), 3, "d" * 30, True, None, id="a long name in 3.1"),
        pytest.param(body_5(0x02, b"d"), 5, "d", True, None, id="MQTT 5"),
        pytest.param(body_5(0x00, b""), 5, "given", False, None, id="MQTT 5 has names given to clients without"),
        pytest.param(body_5(0x40, b"d", b"p"), 5, "d", False, None, id="MQTT 5 knows passwords without users"),
    ],
)
def test_a_good_connect_is_read(
    given_body: bytes, version: int, client_id: str, clean: bool, will_topic: str | None
) -> None:
    connect = known(given_body)
    assert (connect.version, connect.client_id, connect.clean) == (version, client_id, clean)
    assert (connect.keep_alive_s, connect.will and connect.will.topic.decode()) == (60, will_topic)


def test_what_mqtt_5_says_of_the_session_is_known() -> None:
    held = Properties(
        values={
            properties.SESSION_EXPIRY: 77,
            properties.RECEIVE_MAX: 3,
            properties.PACKET_BYTES_MAX: 9_000,
            properties.TOPIC_ALIAS_MAX: 4,
            properties.REQUEST_PROBLEM_INFORMATION: 0,
            properties.AUTHENTICATION_METHOD: b"SCRAM-SHA-1",
        }
    )
    packet = Connect(version=5, client_id=b"d", clean=True, keep_alive_s=60, properties=held)
    outcome = Opening(1_000).receive(encode(packet, 5))
    assert isinstance(outcome, Opened)
    assert outcome.said == packet
    connect = introduced(outcome).connect
    assert (connect.session_expiry_s, connect.receive_max, connect.packet_bytes_max) == (77, 3, 9_000)
    assert (connect.topic_alias_max, connect.wants_problems, connect.authenticates) == (4, False, True)


def test_silence_means_what_the_standard_says() -> None:
    assert known(body(0x02, b"d")).session_expiry_s == 0
    assert known(body(0x00, b"d")).session_expiry_s == NEVER_EXPIRES
    connect = known(body_5(0x00, b"d"))
    assert (connect.session_expiry_s, connect.receive_max, connect.topic_alias_max) == (0, 65_535, 0)
    assert (connect.wants_problems, connect.authenticates) == (True, False)


def test_credentials_tell_the_same_password_from_another() -> None:
    with_will = known(body(0xC6, b"d", b"t", b"m", b"user", b"pass")).owner
    assert known(body(0xC2, b"other", b"user", b"pass")).owner == with_will
    assert known(body(0xC2, b"d", b"user", b"pasS")).owner != with_will
    assert known(body(0xC2, b"d", b"userp", b"ass")).owner != with_will
    assert known(body_5(0x80, b"d", b"x")).owner != known(body_5(0x40, b"d", b"x")).owner


def secretive(version: int, client_id: bytes = b"d") -> Connect:
    proof = {properties.AUTHENTICATION_METHOD: b"m", properties.AUTHENTICATION_DATA: b"the-proof"}
    return Connect(
        version=version,
        client_id=client_id,
        clean=True,
        keep_alive_s=60,
        will=Will(topic=b"w", payload=b"the-will", qos=1, retain=False),
        user=b"the-user",
        password=b"the-password",
        properties=Properties(values=proof) if version == 5 else properties.EMPTY,
    )


@pytest.mark.parametrize("version", [3, 4, 5])
def test_no_credential_is_ever_shown(version: int) -> None:
    outcome = Opening(1_000).receive(encode(secretive(version), version))
    assert isinstance(outcome, Opened)
    introduction = introduced(outcome)
    digest = introduction.connect.owner
    shown = f"{outcome!r} {introduction!r} {introduction.connect!r} {outcome.said!r} {outcome.said.will!r}".encode()
    assert not [secret for secret in (*SECRETS, repr(digest).encode(), digest.hex().encode()) if secret in shown]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_no_credential_is_in_what_is_said_about_a_bad_connect(version: int) -> None:
    good = encode(secretive(version), version)
    header = 2 if good[1] < 0x80 else 3
    for cut in range(header, len(good)):
        for bad in (good[header:cut], good[header:cut] + b"\xff" + good[cut + 1 :] + b"x"):
            outcome = opened(bad)
            with pytest.raises(Violation) as caught:
                parse(CONNECT, bad, version, properties_max=10)
            shown = (repr(outcome) + "".join(traceback.format_exception(caught.value, chain=True))).encode()
            assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize(
    ("version", "code", "answer"),
    [
        (4, 0x88, b"\x20\x02\x00\x03"),
        (3, 0x87, b"\x20\x02\x00\x05"),
        (5, 0x88, b"\x20\x03\x00\x88\x00"),
        (4, 0x82, b""),
    ],
)
def test_a_refusal_speaks_the_version_of_the_client(version: int, code: int, answer: bytes) -> None:
    assert connack_refusing(version, code) == answer


@given(st.binary(max_size=60), st.lists(st.integers(1, 40), max_size=20))
def test_any_fragmentation_opens_the_same(behind: bytes, sizes: list[int]) -> None:
    packet = device.encode_connect("device-1", user="u", password="p")
    stream, opening, outcome, place = packet + behind, Opening(1_000), None, 0
    for size in [*sizes, len(stream)]:
        chunk = stream[place : place + size]
        place += len(chunk)
        if outcome is None:
            outcome = opening.receive(chunk)
    assert isinstance(outcome, Opened)
    assert outcome.packet == packet
    assert behind.startswith(outcome.rest)


@given(st.binary(min_size=1, max_size=200))
def test_rubbish_is_refused_or_waited_for_and_never_raises(rubbish: bytes) -> None:
    for data in (
        rubbish,
        b"\x10" + rubbish,
        encode_frame(CONNECT, rubbish),
        encode_frame(CONNECT, body_5(2) + rubbish),
    ):
        Opening(100).receive(data)


def test_no_more_is_collected_than_allowed() -> None:
    opening = Opening(50)
    assert opening.receive(b"\x10\x30") is None
    assert opening.receive(b"x" * 40) is None
    assert Opening(50).receive(b"\x10\x31") == Refusal("CONNECT too large")
    assert Opening(50).receive(b"\x10\x31" + body_5(0x02)) == Refusal("CONNECT too large", b"\x20\x03\x00\x95\x00")


def test_whatever_else_comes_first_is_closed_without_a_word() -> None:
    others = [first for first in range(256) if first != CONNECT]
    assert {Opening(1_000).receive(bytes((first, 2, 0, 1))) for first in others} == {Refusal("not MQTT")}


@pytest.mark.parametrize("fields", [(b"old",), (b"old", b"t", b"gone"), (b"old", b"user", b"word")])
def test_mqtt_3_1_is_carried_as_3_1_1_and_says_the_same(fields: tuple[bytes, ...]) -> None:
    flags = {1: 0x02, 3: 0x06 if b"gone" in fields else 0xC2}[len(fields)]
    found = introduced(opened(body(flags, *fields, name=b"MQIsdp", level=3)))
    assert found.connect.version == 3
    assert found.packet == encode_frame(CONNECT, body(flags, *fields))


def test_a_bridge_that_says_so_is_of_the_version_beside_it_and_passes_as_it_came() -> None:
    given_body = body(0x02, b"bridge", level=0x84)
    found = introduced(opened(given_body))
    assert (found.connect.version, found.packet) == (4, encode_frame(CONNECT, given_body))
    assert opened(body_5(0x02, b"d").replace(b"\x05", b"\x85", 1)) == Refusal("unknown protocol", b"\x20\x02\x00\x01")
