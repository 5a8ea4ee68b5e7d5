"""What a gateway keeps out: strangers, wrong passwords, packets that are too large, and too many clients."""

import contextlib
import threading
import time

import pytest
from support.clients import is_closed, received
from support.gateways import Running
from support.readings import READING
from support.waiting import until

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


def test_silent_connections_give_way_to_clients(running: Running) -> None:
    with (
        Running(running.here, GatewaySettings(name="crowded", connections_max=40)) as crowded,
        contextlib.ExitStack() as opened,
    ):
        silent = [opened.enter_context(crowded.raw()) for _ in range(60)]
        assert is_closed(silent[0], 2.0), "long before its time is over"
        with crowded.client("late") as late:
            late.published("telemetry/late", READING)
        assert crowded.refused("too many connections") == 0


SPACED_WILL = b"\x00\x04MQTT\x04\xc6\x00\x3c"  # what NATS hangs up on: a will on a topic with a space


def poison(running: Running, name: str) -> bytes:
    """A CONNECT that the embedded broker closes the connection for, though nothing is wrong with the broker."""
    fields = (name, "a b", "gone", running.here.mqtt_user, running.here.mqtt_password)
    body = SPACED_WILL + b"".join(len(text).to_bytes(2, "big") + text.encode() for text in fields)
    return b"\x10" + bytes((len(body),)) + body


def test_a_client_that_the_broker_hangs_up_on_is_refused_at_once(running: Running) -> None:
    before, began_s = running.refused("refused by the broker"), time.monotonic()
    with running.raw(poison(running, "poison")) as refused:
        assert is_closed(refused)
    assert time.monotonic() - began_s < 0.5, "it waits for nobody"
    assert running.refused("refused by the broker") == before + 1


def test_clients_that_the_broker_hangs_up_on_keep_nobody_else_out(running: Running) -> None:
    over, served = threading.Event(), []

    def attack(number: int) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError), running.raw(poison(running, f"poison-{number}")) as refused:
                is_closed(refused, 5.0)
                served.append(number)

    attackers = [threading.Thread(target=attack, args=(number,)) for number in range(16)]
    for attacker in attackers:
        attacker.start()
    try:
        for number in range(20):
            began_s = time.monotonic()
            with running.raw(running.connect_packet(f"good-{number}")) as good:
                assert received(good, 4) == b"\x20\x02\x00\x00"
            assert time.monotonic() - began_s < 2.0
    finally:
        over.set()
        for attacker in attackers:
            attacker.join()
    assert len(served) > 16, "they were there all the time"


def test_mqtt_3_1_clients_are_carried_as_3_1_1(running: Running) -> None:
    for number in range(4):
        with running.client(f"old-{number}", version=3) as old:
            old.published(f"telemetry/old-{number}", READING)


def test_whoever_subscribes_to_a_wildcard_still_hears_the_rest(running: Running) -> None:
    """The embedded broker holds deliveries against what a client may not subscribe to, once it has subscribed so."""
    with running.client("listener") as listener, running.client("speaker") as speaker:
        assert listener.subscribed(("a/b", 1)) == [1]
        assert listener.subscribed(("+/zzz", 1), ("$MQTT/msgs/#", 1)) == [1, 128]
        for number in range(20):
            speaker.published("a/b", b"%d" % number)
        until(lambda: len(listener.heard) == 20)
