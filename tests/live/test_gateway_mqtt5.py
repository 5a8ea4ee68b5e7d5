"""Clients that speak MQTT 5 on a broker that does not: paho, a real gateway, a real NATS server."""

import json
from collections.abc import Iterator

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions
from support.gateways import Running
from support.waiting import until

from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation

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
