"""Clients that send more than they may, between a real broker and a real gateway: they wait, and lose nothing."""

import time
from collections.abc import Iterator

import pytest
from support.clients import is_closed, received
from support.gateways import Running
from support.waiting import until

from tidegate.gateway.settings import GatewaySettings, TopicLimit
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.installation import Installation
from tidegate.mqtt.client import DISCONNECT, PINGREQ, encode_publish

pytestmark = pytest.mark.live
INTERVAL_S = 0.2
ALARMS = DeviceClass(name="siren", topics=("siren/#",), never_delay=True)
PINGRESP = b"\xd0\x00"


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Running]:
    settings = GatewaySettings(
        name="holding",
        hold_s_max=2.0,
        held_bytes_max=2_000,
        limits=(TopicLimit(topics=("shared/#",), rate_per_s=10, burst=1),),
    )
    with Running(installation, settings, (ALARMS, *DEFAULT_CLASSES)) as gateway:
        gateway.advise(INTERVAL_S)
        yield gateway


def publishes(topic: bytes, count: int, *, qos: int) -> bytes:
    return b"".join(
        encode_publish(topic, b"%d" % number, packet_id=number if qos else None) for number in range(1, count + 1)
    )


def pubacks(count: int) -> bytes:
    return b"".join(b"\x40\x02" + number.to_bytes(2, "big") for number in range(1, count + 1))


def test_who_does_not_listen_gets_its_rate_and_its_acknowledgements_later(running: Running) -> None:
    with running.raw(running.connect_packet("deaf", keep_alive_s=60)) as deaf:
        received(deaf, 4)
        began_s = time.monotonic()
        deaf.sendall(publishes(b"telemetry/deaf", 8, qos=1))
        until(lambda: running.state.held > 0)
        (held,) = running.state.most_held or (None,)
        assert received(deaf, 8 * 4) == pubacks(8)
        # Three may come at once, the others one per interval, less the tolerance.
        assert time.monotonic() - began_s > 5 * INTERVAL_S / 1.05 - INTERVAL_S
        assert held is None or (held.client_id, held.reason) == ("deaf", "its own rate")
        until(lambda: running.state.held == 0)
    assert running.state.held_total >= 5


def test_pings_are_answered_while_publishes_wait(running: Running) -> None:
    with running.raw(running.connect_packet("pings", keep_alive_s=60)) as client:
        received(client, 4)
        client.sendall(publishes(b"telemetry/pings", 6, qos=1) + PINGREQ)
        heard = received(client, 6 * 4 + 2)
        assert heard.index(PINGRESP) < heard.index(pubacks(6)[-4:]), "the ping does not wait for what is held"


def test_what_may_not_be_delayed_passes(running: Running) -> None:
    with running.raw(running.connect_packet("both", keep_alive_s=60)) as client:
        received(client, 4)
        siren = encode_publish(b"siren/1", b"now", packet_id=99)
        client.sendall(publishes(b"telemetry/both", 6, qos=1) + siren)
        heard = received(client, 7 * 4)
        assert heard.index(b"\x40\x02\x00\x63") < heard.index(b"\x40\x02\x00\x06")


def test_what_waited_arrives_although_its_client_has_left(running: Running) -> None:
    with running.client("hears") as hears:
        hears.subscribed(("telemetry/gone", 1))
        with running.raw(running.connect_packet("gone", keep_alive_s=60)) as client:
            received(client, 4)
            client.sendall(publishes(b"telemetry/gone", 6, qos=0) + DISCONNECT)
        until(lambda: len(hears.heard) == 6)
        assert [payload for _, payload in hears.heard] == [b"%d" % number for number in range(1, 7)]


def test_clients_that_left_with_publishes_that_wait_are_seen_and_count(running: Running) -> None:
    settings = GatewaySettings(name="leaving", connections_max=3, hold_s_max=20.0)
    with Running(running.here, settings) as leaving:
        leaving.advise(5.0)
        for name in ("one", "two"):
            with leaving.raw(leaving.connect_packet(name, keep_alive_s=60)) as client:
                received(client, 4)
                client.sendall(publishes(f"telemetry/{name}".encode(), 8, qos=1))
                until(lambda: leaving.state.held > 0)
        until(lambda: leaving.state.connections == 0)
        until(lambda: {one.client_id for one in leaving.state.most_held} == {"one", "two"})
        with leaving.raw(leaving.connect_packet("three")) as third, leaving.raw() as fourth:
            assert received(third, 4) == b"\x20\x02\x00\x00"
            assert is_closed(fourth), "what two others left behind takes their places"
    running.advise(INTERVAL_S)


def test_who_has_to_wait_too_long_is_closed_and_counted(running: Running) -> None:
    before = running.state
    with running.raw(running.connect_packet("hasty", keep_alive_s=1)) as client:
        received(client, 4)
        client.sendall(publishes(b"telemetry/hasty", 30, qos=0))
        began_s = time.monotonic()
        assert is_closed(client)
        assert time.monotonic() - began_s < 1.5, "not longer than half the keep-alive"
    until(lambda: running.refused("held too long") == before.refused.get("held too long", 0) + 1)
    until(lambda: running.state.dropped.get("held too long", 0) > before.dropped.get("held too long", 0))


def test_coming_again_refills_nothing(running: Running) -> None:
    for _ in range(3):
        with running.raw(running.connect_packet("again", keep_alive_s=60)) as client:
            received(client, 4)
            client.sendall(publishes(b"telemetry/again", 3, qos=1))
            began_s = time.monotonic()
            received(client, 3 * 4)
            took_s = time.monotonic() - began_s
    assert took_s > INTERVAL_S / 2


def test_a_topics_limit_holds_all_clients_together(running: Running) -> None:
    with (
        running.raw(running.connect_packet("one", keep_alive_s=60)) as one,
        running.raw(running.connect_packet("two", keep_alive_s=60)) as two,
    ):
        received(one, 4)
        received(two, 4)
        began_s = time.monotonic()
        for client in (one, two):
            client.sendall(publishes(b"shared/a", 3, qos=1))
        received(one, 12)
        received(two, 12)
        assert time.monotonic() - began_s > 4 / 10, "six publishes at ten a second, the first at once"


def test_a_client_that_takes_itself_over_gives_up_what_waits_and_nothing_else_stops(running: Running) -> None:
    packet = running.connect_packet("over", keep_alive_s=60)
    for _ in range(3):
        with running.raw(packet) as client:
            received(client, 4)
            client.sendall(publishes(b"telemetry/over", 8, qos=1))
            time.sleep(0.3)
    until(lambda: running.state.held == 0)
    looking = running.gateway.looking
    assert looking is not None
    assert not looking.done()


def test_a_limit_counts_every_topic_of_a_chunk(running: Running) -> None:
    with running.raw(running.connect_packet("mixed", keep_alive_s=60)) as client:
        received(client, 4)
        client.sendall(encode_publish(b"shared/m", b"0", packet_id=1))
        received(client, 4)
        began_s = time.monotonic()
        chunk = publishes(b"shared/m", 4, qos=1) + encode_publish(b"siren/m", b"x", packet_id=9)
        client.sendall(chunk)
        received(client, 5 * 4)
        assert time.monotonic() - began_s > 0.2, "four on the limited topic wait for their tokens"
