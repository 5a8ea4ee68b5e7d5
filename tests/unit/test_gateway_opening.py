"""The first packet of a connection: what is read from it, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.devices.mqtt import encode_connect, encode_length
from tidegate.gateway.mqtt.opening import Opened, Opening, Refusal, parse_connect


def text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def body(flags: int, *fields: bytes, name: bytes = b"MQTT", level: int = 4) -> bytes:
    return text(name) + bytes((level, flags, 0, 60)) + b"".join(text(field) for field in fields)


@pytest.mark.parametrize(
    ("given_body", "reason"),
    [
        pytest.param(b"", "malformed CONNECT", id="nothing"),
        pytest.param(b"\x00\x04MQ", "malformed CONNECT", id="a name that is cut off"),
        pytest.param(b"\x00\x04MQTT\x04\x02", "malformed CONNECT", id="no keep-alive"),
        pytest.param(body(0x02), "malformed CONNECT", id="no client identifier"),
        pytest.param(body(0x02, b"d") + b"x", "malformed CONNECT", id="a byte too many"),
        pytest.param(body(0x03, b"d"), "malformed CONNECT", id="the reserved flag"),
        pytest.param(body(0x0A, b"d"), "malformed CONNECT", id="a will's QoS without a will"),
        pytest.param(body(0x22, b"d"), "malformed CONNECT", id="a retained will without a will"),
        pytest.param(body(0x1E, b"d", b"t", b"m"), "malformed CONNECT", id="a will at QoS 3"),
        pytest.param(body(0x06, b"d", b"t"), "malformed CONNECT", id="a will without a message"),
        pytest.param(body(0x42, b"d", b"p"), "malformed CONNECT", id="a password without a user"),
        pytest.param(body(0x02, b"\xff"), "malformed CONNECT", id="a client identifier that is not UTF-8"),
        pytest.param(body(0x06, b"d", b"tidegate/advice", b"m"), "forged advice", id="advice as a last will"),
        pytest.param(body(0x02, b"d", level=5), "MQTT 5 is not spoken", id="MQTT 5"),
        pytest.param(body(0x02, b"d", level=6), "unknown protocol", id="a version that does not exist"),
        pytest.param(body(0x02, b"d", name=b"MQIsdp"), "unknown protocol", id="the old name with the new version"),
    ],
)
def test_a_bad_connect_is_refused(given_body: bytes, reason: str) -> None:
    refusal = parse_connect(given_body)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason


@pytest.mark.parametrize(
    ("given_body", "client_id", "clean", "will_topic"),
    [
        pytest.param(body(0x02, b"d"), "d", True, None, id="the least there is"),
        pytest.param(body(0x00, b""), "", False, None, id="whether an empty name is allowed is the broker's affair"),
        pytest.param(body(0xCE, b"d", b"w/t", b"m", b"u", b"p"), "d", True, "w/t", id="everything"),
        pytest.param(body(0x02, b"d", name=b"MQIsdp", level=3), "d", True, None, id="MQTT 3.1"),
    ],
)
def test_a_good_connect_is_read(given_body: bytes, client_id: str, clean: bool, will_topic: str | None) -> None:
    connect = parse_connect(given_body)
    assert not isinstance(connect, Refusal)
    assert (connect.client_id, connect.clean, connect.keep_alive_s) == (client_id, clean, 60)
    assert connect.will_topic == will_topic


def test_credentials_tell_the_same_password_from_another() -> None:
    def credentials(flags: int, *fields: bytes) -> bytes:
        connect = parse_connect(body(flags, *fields))
        assert not isinstance(connect, Refusal)
        return connect.credentials

    with_will = credentials(0xC6, b"d", b"t", b"m", b"user", b"pass")
    assert credentials(0xC2, b"other", b"user", b"pass") == with_will
    assert credentials(0xC2, b"d", b"user", b"pasS") != with_will
    assert credentials(0xC2, b"d", b"userp", b"ass") != with_will


@given(st.binary(max_size=60), st.lists(st.integers(1, 40), max_size=20))
def test_any_fragmentation_opens_the_same(behind: bytes, sizes: list[int]) -> None:
    packet = encode_connect("device-1", user="u", password="p")
    stream, opening, outcome, place = packet + behind, Opening(1_000), None, 0
    for size in [*sizes, len(stream)]:
        chunk = stream[place : place + size]
        place += len(chunk)
        if chunk and outcome is None:
            outcome = opening.receive(chunk)
    assert isinstance(outcome, Opened)
    assert outcome.packet == packet
    assert behind.startswith(outcome.rest)


@given(st.binary(min_size=1, max_size=200))
def test_rubbish_is_refused_or_waited_for_and_never_raises(rubbish: bytes) -> None:
    for data in (rubbish, b"\x10" + rubbish, b"\x10" + encode_length(len(rubbish)) + rubbish):
        Opening(100).receive(data)


def test_no_more_is_collected_than_allowed() -> None:
    opening = Opening(50)
    assert opening.receive(b"\x10\x30") is None
    assert opening.receive(b"x" * 40) is None
    assert Opening(50).receive(b"\x10\x31") == Refusal("CONNECT too large")
