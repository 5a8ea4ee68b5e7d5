"""Clients that speak MQTT 5 on a broker that does not: paho, a real gateway, a real NATS server."""

import json
import socket
from collections.abc import Iterator

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions
from support.clients import is_closed, received
from support.gateways import Running
from support.waiting import until

from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.mqtt.client import PINGREQ
from tidegate.mqtt.packets import Connect, encode

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Running]:
    with Running(installation, GatewaySettings(name="five", tell_quota_exceeded=True)) as gateway:
        yield gateway


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_versions_talk_to_each_other(running: Running, qos: int) -> None:
    with running.client(f"new-{qos}", version=5) as new, running.client(f"old-{qos}") as old:
        new.subscribe(f"to-new/{qos}", options=SubscribeOptions(qos=qos))
        until(lambda: new.granted)
        old.subscribed((f"to-old/{qos}", qos))
        for number in range(20):
            new.published(f"to-old/{qos}", b"%d" % number, qos)
            old.published(f"to-new/{qos}", b"%d" % number, qos)
        until(lambda: len(new.heard) == len(old.heard) == 20)
        assert [payload for _, payload in new.heard] == [payload for _, payload in old.heard]
    until(lambda: not running.state.versions)


def test_advice_rides_on_the_acknowledgement_and_quotas_are_told(running: Running) -> None:
    told: list[tuple[str, str]] = []
    codes: list[int] = []
    with running.client("device", version=5) as device:

        def published(*arguments: object) -> None:
            code, properties = arguments[3], arguments[4]
            codes.append(code.value)  # type: ignore[attr-defined]
            told.extend(getattr(properties, "UserProperty", []))

        device.on_publish = published
        assert running.state.versions == {"5 on 3.1.1": 1}
        running.advise(5.0)
        device.published("telemetry/device", b"1")
        device.published("telemetry/device", b"2")
        assert [name for name, _ in told] == ["tidegate-advice"], "once per advice"
        assert json.loads(told[0][1])["interval_s"] == 5.0
        for number in range(3, 6):
            device.publish("telemetry/device", b"%d" % number, 1)
        until(lambda: len(codes) == 5)
        assert codes == [0, 0, 0, 0x97, 0x97]
    assert running.state.dropped == {"quota exceeded": 2}


def test_a_session_outlives_its_client_for_as_long_as_it_asks(running: Running) -> None:
    def connect_again(expiry_s: int) -> bool:
        """Whether the session was still there."""
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = expiry_s
        with running.client("keeps", version=5, clean_start=False, properties=properties) as client:
            return client.presents[0]

    assert not connect_again(60)
    assert connect_again(0), "it had a minute"
    until(lambda: not connect_again(0))


def connect_5(running: Running, name: str) -> bytes:
    """A client whose session ends with its connection, and that takes up one that is there."""
    user, password = running.here.mqtt_user.encode(), running.here.mqtt_password.encode()
    said = Connect(version=5, client_id=name.encode(), clean=False, keep_alive_s=60, user=user, password=password)
    return encode(said, 5)


def connected_5(running: Running, name: str) -> socket.socket:
    connection = socket.create_connection(running.address_of(None), timeout=15)
    connection.sendall(connect_5(running, name))
    first = received(connection, 2)
    rest = received(connection, first[1])
    assert (first[0], rest[0], rest[1]) == (0x20, 0, 0), "taken on, and no session was left"
    return connection


def test_a_client_that_comes_back_at_once_meets_nobody_who_deletes_in_its_name(running: Running) -> None:
    for _ in range(12):
        connected_5(running, "hasty").close()
    with connected_5(running, "hasty") as last:
        last.sendall(PINGREQ)
        assert received(last, 2) == b"\xd0\x00"
        assert not is_closed(last, 0.5)


def test_a_client_that_takes_its_own_place_is_not_thrown_out(running: Running) -> None:
    connections = [connected_5(running, "twin") for _ in range(12)]
    last = connections[-1]
    assert not is_closed(last, 0.5)
    last.sendall(PINGREQ)
    assert received(last, 2) == b"\xd0\x00"
    for connection in connections:
        connection.close()
