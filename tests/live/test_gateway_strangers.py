"""What a gateway keeps out: strangers, wrong passwords, packets that are too large, and too many clients."""

import contextlib

import pytest
from support.clients import is_closed, received
from support.gateways import Running
from support.readings import READING

from tidegate.gateway.settings import GatewaySettings
from tidegate.mqtt.client import encode_connect, encode_publish

pytestmark = pytest.mark.live


def test_a_wrong_password_disconnects_nobody(running: Running) -> None:
    with running.client("mine") as mine:
        with running.raw(encode_connect("mine", user=running.here.mqtt_user, password="guess")) as other:
            assert received(other, 4) == b"\x20\x02\x00\x05"
            assert is_closed(other)
        mine.published("telemetry/mine", READING)
        assert mine.is_connected()


V5 = b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x02v5"


@pytest.mark.parametrize(
    ("sent", "answer", "reason"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", b"", "not MQTT", id="a web browser"),
        pytest.param(b"\x10\xff\xff\xff\xff\x01", b"", "not MQTT", id="a length that never ends"),
        pytest.param(b"\x10\x80\x80\x04", b"", "CONNECT too large", id="a CONNECT that is too large"),
        pytest.param(b"\x10\x20\x00\x04MQ", b"", "no CONNECT in time", id="a CONNECT that never ends"),
        pytest.param(b"", b"", "no CONNECT in time", id="silence"),
        pytest.param(V5, b"\x20\x03\x00\x87\x00", "refused by the broker", id="MQTT 5 without a password"),
        pytest.param(b"\x10\x0c\x00\x04MQTT\x04\x01\x00\x3c\x00\x00", b"", "malformed CONNECT", id="a reserved flag"),
        pytest.param(b"\x10\x0c\x00\x04NATS\x04\x02\x00\x3c\x00\x00", b"", "unknown protocol", id="another protocol"),
    ],
)
def test_strangers_are_closed_and_counted(running: Running, sent: bytes, answer: bytes, reason: str) -> None:
    before = running.refused(reason)
    with running.client("resident") as resident:
        with running.raw(sent) as stranger:
            assert received(stranger, len(answer)) == answer
            assert is_closed(stranger)
        assert running.refused(reason) == before + 1
        resident.published("telemetry/resident", READING)


def test_a_packet_that_is_too_large_ends_the_connection(running: Running) -> None:
    before = running.refused("packet too large")
    with running.raw(running.connect_packet("large")) as large:
        received(large, 4)
        large.sendall(encode_publish(b"telemetry/large", bytes(150_000), packet_id=1))
        assert received(large, 4) == b"\x40\x02\x00\x01"
        with contextlib.suppress(ConnectionError):
            large.sendall(encode_publish(b"telemetry/large", bytes(250_000), packet_id=2))
        assert is_closed(large)
    assert running.refused("packet too large") == before + 1


def test_connections_beyond_the_limit_are_closed(running: Running) -> None:
    with (
        Running(running.here, GatewaySettings(name="small", connections_max=1)) as small,
        small.client("first") as first,
        small.raw() as second,
    ):
        assert is_closed(second)
        assert small.refused("too many connections") == 1
        first.published("telemetry/first", READING)
