"""Advice on its way to real devices: who hears it, when, and until when."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from support import bus
from support.clients import CONNACK, is_closed, received
from support.credentials import settled
from support.gateways import DERIVED_TOO, Running
from support.readings import READING, connect_with_will, own, post
from support.waiting import until

from tidegate.bus.documents import ADVICE
from tidegate.devices.device import Device
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.advice import ADVICE_TOPIC, Advice
from tidegate.model.installation import Installation
from tidegate.mqtt.client import encode_publish

pytestmark = pytest.mark.live


def test_advice_comes_behind_an_acknowledgement_to_those_who_asked(running: Running) -> None:
    running.advise(1.5)
    with running.client("asks") as asks, running.client("does-not-ask") as other:
        other.subscribed(("#", 0))
        assert asks.subscribed(("own/a", 1), (ADVICE_TOPIC, 1), ("own/b", 0)) == [1, 0, 0]
        asks.published("telemetry/asks", READING)
        other.published("own/a", b"to you")
        until(lambda: len(asks.heard) == 2)
        topic, payload = asks.heard[0]
        assert topic == ADVICE_TOPIC
        advice = json.loads(payload)
        assert advice["interval_s"] == 1.5
        assert 30 < advice["lifetime_s"] <= 60, "what is left of it"
        assert asks.heard[1] == ("own/a", b"to you")
        asks.published("telemetry/asks", READING)
        assert len(asks.heard) == 2, "one revision is sent once"
        running.advise(2.5)
        asks.published("telemetry/asks", READING, 2)
        until(lambda: len(asks.heard) == 3)
        asks.unsubscribe([ADVICE_TOPIC, "own/a"])
        running.advise(3.5)
        asks.published("telemetry/asks", READING)
        other.published("own/a", b"to nobody")
        time.sleep(0.1)
        assert len(asks.heard) == 3
        assert ADVICE_TOPIC not in {topic for topic, _ in other.heard}


def test_classes_are_counted_and_each_device_hears_what_its_class_is_advised(
    installation: Installation, tmp_path: Path
) -> None:
    advice = Advice(
        interval_s=5,
        lifetime_s=60,
        classes={"alarm": 0.3, "telemetry": 30},
        dead_bands={"command": 8},
    )

    async def use(counting: Running) -> None:
        def device(name: str, device_class: str | None, dead_band: float | None = None) -> Device:
            return Device(
                name,
                addresses=[counting.address],
                user=installation.mqtt_user,
                password=installation.mqtt_password,
                boot=1,
                default_interval_s=0.05,
                device_class=device_class,
                dead_band=dead_band,
            )

        async with (
            device("siren", "alarm") as siren,
            device("pump", "telemetry") as pump,
            device("plain", None) as plain,
            device("valve", "command", 0.5) as valve,
        ):
            devices, value = (siren, pump, plain, valve), 0.0
            async with asyncio.timeout(15):
                while [each.interval_s for each in devices] != [0.3, 30, 5, 0] or valve.dead_band != 4:
                    for each in devices:
                        each.sample(value)
                    value = 1 - value
                    await asyncio.sleep(0.01)
            for each in devices:
                assert await each.drain(15), each.last_failure
                assert each.counters.samples == each.counters.samples_acked
            found = counting.state.classes
            assert {name: one.devices for name, one in found.items()} == {"alarm": 1, "command": 1, "telemetry": 2}
            assert found["alarm"].publishes == siren.counters.sent
            assert found["command"].publishes == valve.counters.sent
            assert found["telemetry"].publishes == pump.counters.sent + plain.counters.sent

    settled(installation, tmp_path)
    with Running(installation, GatewaySettings(name="counting"), identity=DERIVED_TOO) as counting:
        counting.wait_for_keys()
        counting.put(ADVICE, advice)
        until(lambda: (now := counting.gateway.gate.advice.current()) is not None and now.classes == advice.classes)
        asyncio.run(use(counting))
        until(lambda: not any(one.devices for one in counting.state.classes.values()))
        before = counting.state.classes["telemetry"].publishes
        answer = post(counting.http, "web-1", own(installation, "web-1"))
        assert (answer.status, answer.headers["tidegate-interval-s"]) == (204, "30"), (
            "who comes by HTTP hears its topic's class"
        )
        after = counting.state.classes["telemetry"]
        assert (after.devices, after.publishes) == (1, before + 1)


def test_a_device_with_no_other_topic_is_answered_by_the_gateway(running: Running) -> None:
    running.advise(4.5)
    with running.raw(running.connect_packet("bare")) as bare:
        assert received(bare, 4) == CONNACK
        bare.sendall(b"\x82\x14\x00\x07\x00\x0ftidegate/advice\x00")
        assert received(bare, 5) == b"\x90\x03\x00\x07\x00"
        bare.sendall(encode_publish(b"telemetry/bare", READING, packet_id=9))
        assert received(bare, 4) == b"\x40\x02\x00\x09"
        head = received(bare, 2)
        topic, payload = received(bare, 2 + len(ADVICE_TOPIC)), received(bare, head[1] - 2 - len(ADVICE_TOPIC))
        assert (head[0], topic[2:].decode(), json.loads(payload)["interval_s"]) == (0x30, ADVICE_TOPIC, 4.5)
        bare.sendall(b"\xa2\x13\x00\x08\x00\x0ftidegate/advice\xc0\x00")
        assert sorted((received(bare, 2), received(bare, 2), received(bare, 2))) == [
            b"\x00\x08",
            b"\xb0\x02",
            b"\xd0\x00",
        ]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"interval_s":-1,"lifetime_s":10}', b'{"interval_s":1,"lifetime_s":0}', b"[1]"]
)
def test_advice_that_cannot_be_read_is_reported_and_lets_nobody_go(running: Running, content: bytes) -> None:
    running.advise(2.25)
    running.said.clear()
    bus.put_raw(running.here, "advice", content)
    until(lambda: any("'advice' on the control bus is damaged" in said for said in running.said))
    left = running.gateway.gate.advice.current()
    assert left is not None
    assert left.interval_s == 2.25


def test_advice_that_nobody_renews_lapses(running: Running) -> None:
    running.advise(5.5, lifetime_s=0.3)
    until(lambda: running.gateway.gate.advice.current() is None)
    with running.client("late-asker") as late:
        late.subscribed((ADVICE_TOPIC, 0))
        late.published("telemetry/late", READING)
        late.published("telemetry/late", READING)
        assert late.heard == []
        running.advise(6.5)
        late.published("telemetry/late", READING)
        until(lambda: len(late.heard) == 1)


def test_forged_advice_ends_the_connection(running: Running) -> None:
    before = running.refused("forged advice")
    with running.client("bystander") as bystander, running.client("watches") as watches:
        watches.subscribed(("tidegate/#", 0))
        with running.raw(running.connect_packet("forger")) as forger:
            received(forger, 4)
            forger.sendall(encode_publish(ADVICE_TOPIC.encode(), b'{"interval_s":3600,"lifetime_s":3600}'))
            assert is_closed(forger)
        with running.raw(connect_with_will(running.here, "forging-will", ADVICE_TOPIC)) as forger:
            assert is_closed(forger)
        assert running.refused("forged advice") == before + 2
        bystander.published("telemetry/bystander", READING)
        assert watches.heard == []
