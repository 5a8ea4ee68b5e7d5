"""What passes between real MQTT clients and a real broker, and what it costs."""

import contextlib
import socket
import threading
import time

import pytest
from support.clients import CONNACK, is_closed, received
from support.gateways import Running
from support.readings import READING, connect_with_will
from support.waiting import until

from tidegate.mqtt.client import encode_publish

pytestmark = pytest.mark.live


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_quality_of_service_passes_both_ways(running: Running, qos: int) -> None:
    with running.client(f"hears-{qos}") as hears, running.client(f"says-{qos}") as says:
        assert hears.subscribed((f"talk/{qos}", qos)) == [qos]
        for number in range(50):
            says.published(f"talk/{qos}", b"%d" % number, qos)
        until(lambda: len(hears.heard) == 50)
        assert [payload for _, payload in hears.heard] == [b"%d" % number for number in range(50)]


def test_retained_messages_wills_and_sessions_are_the_brokers(running: Running) -> None:
    with running.client("keeper") as keeper:
        keeper.published("kept/a", b"kept", retain=True)
        keeper.subscribed(("wills/#", 1))
        with running.client("late") as late:
            late.subscribed(("kept/#", 0))
            until(lambda: late.heard == [("kept/a", b"kept")])
        keeper.published("kept/a", b"", retain=True)
        with running.raw(connect_with_will(running.here, "dies", "wills/dies")) as dying:
            assert received(dying, 4) == CONNACK
        with running.client("leaves", will="wills/leaves"):
            pass
        until(lambda: keeper.heard == [("wills/dies", b"gone")])
    with running.client("sleeper", clean=False) as sleeper:
        sleeper.subscribed(("sleep/#", 1))
    with running.client("waker") as waker:
        waker.published("sleep/a", b"while away")
    with running.client("sleeper", clean=False) as sleeper:
        until(lambda: sleeper.heard == [("sleep/a", b"while away")])


def test_a_client_that_connects_again_replaces_itself(running: Running) -> None:
    packet = running.connect_packet("twice")
    with running.raw(packet) as first:
        assert received(first, 4) == CONNACK
        threading.Thread(target=_ping_until_closed, args=(first.dup(),), daemon=True).start()
        taken_s = []
        for _ in range(4):
            begun = time.monotonic()
            with running.raw(packet) as second:
                assert received(second, 4) == CONNACK
                taken_s.append(time.monotonic() - begun)
        assert min(taken_s[1:]) < 0.9, "a broker that met both at once holds the next one back for 1 s"
        first.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while first.recv(65_536):
                pass


def _ping_until_closed(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while True:
            connection.sendall(b"\xc0\x00")
            time.sleep(0.001)


def test_what_follows_connect_at_once_is_not_lost_when_the_device_hangs_up(running: Running) -> None:
    with running.client("listens") as listens:
        listens.subscribed(("quick/#", 0))
        quick = running.connect_packet("quick") + encode_publish(b"quick/a", b"said") + b"\xe0\x00"
        with running.raw(quick):
            pass
        until(lambda: listens.heard == [("quick/a", b"said")])


def test_a_half_closed_device_is_closed_once_the_broker_let_go(running: Running) -> None:
    with running.raw(running.connect_packet("half")) as half:
        received(half, 4)
        half.sendall(encode_publish(b"telemetry/half", READING, packet_id=5))
        assert received(half, 4) == b"\x40\x02\x00\x05"
        half.shutdown(socket.SHUT_WR)
        assert is_closed(half)
    until(lambda: running.device("half") is None)


def test_a_subscriber_that_does_not_read_costs_bounded_memory(running: Running) -> None:
    """16 MB are for it, the sockets and the gateway hold a few hundred kilobytes, and others are served as before."""
    subscribe = b"\x82\x0b\x00\x01\x00\x06slow/a\x00"
    payload = bytes(100_000)
    with running.raw(running.connect_packet("slow") + subscribe, buffer_bytes=8_192) as slow:
        assert received(slow, 9) == b"\x20\x02\x00\x00\x90\x03\x00\x01\x00"
        held = 0
        with running.client("fast") as fast:
            for _ in range(160):
                fast.published("slow/a", payload)
                device = running.device("slow")
                if device is not None and device.transport is not None:
                    held = max(held, device.transport.get_write_buffer_size())
        assert 0 < held < 1_500_000
