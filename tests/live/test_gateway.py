"""The gateway between real MQTT clients and a real broker: what passes, what it adds, and what it keeps out."""

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from gateways import Running, is_closed, received, until
from tidegate.bus.knowledge import Knowledge

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.wire import Wire
from tidegate.devices.device import Device
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.advice import ADVICE_KEY, ADVICE_TOPIC, Advice
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.model.routes import ROUTES_KEY, Broker, Routes
from tidegate.mqtt.client import encode_connect, encode_publish
from tidegate.mqtt.packets import Connect, Will, encode

pytestmark = pytest.mark.live
TOKEN = "secret"
READING = b'{"value": 21.5, "boot": 1, "seq": 1}'


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBrokers]:
    with EmbeddedBrokers(tmp_path_factory.mktemp("gateway"), BrokerSettings(nodes=1, slices=2)) as started:
        yield started


@pytest.fixture(scope="module")
def installation(brokers: EmbeddedBrokers) -> Installation:
    assert brokers.installation is not None
    return msgspec.structs.replace(brokers.installation, token=TOKEN)


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Running]:
    settings = GatewaySettings(
        connect_timeout_s=1.0,
        admission_s_max=1.0,
        connect_bytes_max=4_096,
        packet_bytes_max=200_000,
        enforce_advice=False,
    )
    with Running(installation, settings) as gateway:
        yield gateway


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
        with running.raw(_connect_with_will(running, "dies", "wills/dies")) as dying:
            assert received(dying, 4) == b"\x20\x02\x00\x00"
        with running.client("leaves", will="wills/leaves"):
            pass
        until(lambda: keeper.heard == [("wills/dies", b"gone")])
    with running.client("sleeper", clean=False) as sleeper:
        sleeper.subscribed(("sleep/#", 1))
    with running.client("waker") as waker:
        waker.published("sleep/a", b"while away")
    with running.client("sleeper", clean=False) as sleeper:
        until(lambda: sleeper.heard == [("sleep/a", b"while away")])


def _connect_with_will(running: Running, name: str, topic: str) -> bytes:
    here = running.here
    connect = Connect(
        version=4,
        client_id=name.encode(),
        clean=True,
        keep_alive_s=60,
        will=Will(topic=topic.encode(), payload=b"gone", qos=0, retain=False),
        user=here.mqtt_user.encode(),
        password=here.mqtt_password.encode(),
    )
    return encode(connect, 4)


def test_a_client_that_connects_again_replaces_itself(running: Running) -> None:
    packet = running.connect_packet("twice")
    with running.raw(packet) as first:
        assert received(first, 4) == b"\x20\x02\x00\x00"
        threading.Thread(target=_ping_until_closed, args=(first.dup(),), daemon=True).start()
        taken_s = []
        for _ in range(4):
            begun = time.monotonic()
            with running.raw(packet) as second:
                assert received(second, 4) == b"\x20\x02\x00\x00"
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


def test_a_wrong_password_disconnects_nobody(running: Running) -> None:
    with running.client("mine") as mine:
        with running.raw(encode_connect("mine", user=running.here.mqtt_user, password="guess")) as other:
            assert received(other, 4) == b"\x20\x02\x00\x05"
            assert is_closed(other)
        mine.published("telemetry/mine", READING)
        assert mine.is_connected()


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


def test_classes_are_counted_and_each_device_hears_what_its_class_is_advised(installation: Installation) -> None:
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

    with Running(installation, GatewaySettings(name="counting")) as counting:
        counting.put(ADVICE_KEY, advice)
        until(lambda: (now := counting.gateway.gate.advice.current()) is not None and now.classes == advice.classes)
        asyncio.run(use(counting))
        until(lambda: not any(one.devices for one in counting.state.classes.values()))
        before = counting.state.classes["telemetry"].publishes
        status, _, headers = post(counting, "web-1", READING)
        assert (status, headers["tidegate-interval-s"]) == (204, "30"), "who comes by HTTP hears its topic's class"
        after = counting.state.classes["telemetry"]
        assert (after.devices, after.publishes) == (0, before + 1)


def test_a_device_with_no_other_topic_is_answered_by_the_gateway(running: Running) -> None:
    running.advise(4.5)
    with running.raw(running.connect_packet("bare")) as bare:
        assert received(bare, 4) == b"\x20\x02\x00\x00"
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
        with running.raw(_connect_with_will(running, "forging-will", ADVICE_TOPIC)) as forger:
            assert is_closed(forger)
        assert running.refused("forged advice") == before + 2
        bystander.published("telemetry/bystander", READING)
        assert watches.heard == []


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
    with running.raw(running.connect_packet("large")) as large:
        received(large, 4)
        large.sendall(encode_publish(b"telemetry/large", bytes(150_000), packet_id=1))
        assert received(large, 4) == b"\x40\x02\x00\x01"
        with contextlib.suppress(ConnectionError):
            large.sendall(encode_publish(b"telemetry/large", bytes(250_000), packet_id=2))
        assert is_closed(large)
    assert running.refused("packet too large") == 1


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


def test_a_broker_that_does_not_read_stops_its_devices_from_sending(running: Running, brokers: EmbeddedBrokers) -> None:
    with running.raw(running.connect_packet("eager")) as eager:
        received(eager, 4)
        packet = encode_publish(b"telemetry/eager", bytes(50_000))
        brokers.pause_node(0)
        try:
            eager.settimeout(2)
            with pytest.raises(TimeoutError):
                eager.sendall(packet * 1_000)
            device = running.device("eager")
            assert device is not None
            assert device.side is not None
            assert device.side.transport is not None
            assert device.side.transport.get_write_buffer_size() < 1_500_000
        finally:
            brokers.resume_node(0)


def test_a_broker_that_dies_takes_its_devices_along_and_they_come_back(
    running: Running, brokers: EmbeddedBrokers
) -> None:
    with running.raw(running.connect_packet("orphan")) as orphan:
        received(orphan, 4)
        brokers.kill_node(0)
        assert is_closed(orphan)
    with running.raw(running.connect_packet("orphan")) as orphan:
        assert received(orphan, 4) == b"\x20\x02\x00\x03"
    brokers.start_node(0)
    with running.client("orphan") as client:
        client.published("telemetry/orphan", READING)
    until(lambda: post(running, "web-1", READING)[0] == 204)
    until(lambda: running.state.brokers == {"broker-1": 1})  # HTTP ingest alone


def test_connections_beyond_the_limit_are_closed(running: Running) -> None:
    with (
        Running(running.here, GatewaySettings(name="small", connections_max=1)) as small,
        small.client("first") as first,
        small.raw() as second,
    ):
        assert is_closed(second)
        assert small.refused("too many connections") == 1
        first.published("telemetry/first", READING)


def test_a_broker_that_is_not_there_is_passed_over(running: Running, installation: Installation) -> None:
    host, port = installation.mqtt_addresses[0]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        gone = Broker(name="gone", host="127.0.0.1", port=1, weight=100)
        mute = Broker(name="mute", host="127.0.0.1", port=silent.getsockname()[1], weight=50)
        there = Broker(name="there", host=host, port=port)
        settings = GatewaySettings(name="choosing", broker_timeout_s=0.5, admission_s_max=1.0)
        with Running(installation, settings) as choosing:
            choosing.put(ROUTES_KEY, Routes(brokers=(gone, mute, there)))
            until(lambda: len(choosing.gateway.gate.router.routes.brokers) == 3)
            with choosing.client("persistent") as client:
                client.published("telemetry/persistent", READING)
                assert choosing.state.brokers["there"] == 1
                choosing.put(ROUTES_KEY, Routes(brokers=(gone, msgspec.structs.replace(there, healthy=False))))
                until(lambda: len(choosing.gateway.gate.router.routes.brokers) == 2)
                with choosing.raw(choosing.connect_packet("unlucky")) as unlucky:
                    assert received(unlucky, 4) == b"\x20\x02\x00\x03"
                    assert is_closed(unlucky)
                client.published("telemetry/persistent", READING)
            assert choosing.refused("no broker available") == 1
    with Wire(installation.control_urls) as wire:
        Knowledge(wire).delete(ROUTES_KEY)
    # Nobody says any routes now: the gateways go back to the installation's own brokers.
    until(lambda: [broker.name for broker in running.gateway.gate.router.routes.brokers] == ["broker-1"])


def post(running: Running, device: str, body: bytes, token: str = TOKEN) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(*running.gateway.http_address, timeout=15)
    with contextlib.closing(connection):
        connection.request("POST", f"/v1/telemetry/{device}", body, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}


def test_a_reading_by_http_is_acknowledged_and_advised(running: Running) -> None:
    running.advise(7.5)
    with running.client("http-listener") as listener:
        listener.subscribed(("telemetry/web-1", 1))
        status, text, headers = post(running, "web-1", READING)
        assert (status, text) == (204, "")
        assert headers["tidegate-interval-s"] == "7.5"
        assert 30 < float(headers["tidegate-lifetime-s"]) <= 60
        until(lambda: listener.heard == [("telemetry/web-1", READING)])


@pytest.mark.parametrize(
    ("device", "body", "token", "status", "words"),
    [
        pytest.param("web-1", READING, "wrong", 401, "token is missing or wrong", id="a wrong token"),
        pytest.param("web-1", b"warm", TOKEN, 400, "not a reading", id="no JSON"),
        pytest.param("web-1", b'{"value": 1, "boot": 1}', TOKEN, 400, "boot and seq", id="half an identity"),
        pytest.param("web%231", READING, TOKEN, 400, "topic level", id="a device that is no topic level"),
        pytest.param("web-1", bytes(70_000), TOKEN, 413, "too large", id="a body that is too large"),
    ],
)
def test_a_bad_request_is_told_why(
    running: Running, device: str, body: bytes, token: str, status: int, words: str
) -> None:
    got, text, _ = post(running, device, body, token)
    assert (got, text.count("\n")) == (status, 1)
    assert words in text


def test_without_a_broker_http_answers_503_and_the_last_routes_stay_without_a_bus(tmp_path: Path) -> None:
    nowhere = Installation(
        control_urls=("nats://control:x@127.0.0.1:1",),
        data_urls=(),
        mqtt_addresses=(("127.0.0.1", 1),),
        monitor_urls=(),
        mqtt_user="device",
        mqtt_password="x",
        slices=1,
        tables=str(tmp_path),
        token=TOKEN,
    )
    with Running(nowhere, GatewaySettings(http_timeout_s=0.3, admission_s_max=0.5)) as alone:
        assert alone.said == [
            "The control bus does not answer: clients go to the installation's brokers until it does."
        ]
        assert post(alone, "web-1", READING)[:2] == (503, "No broker acknowledged the reading within 0.3 s.\n")
        with alone.raw(alone.connect_packet("lonely")) as lonely:
            assert received(lonely, 4) == b"\x20\x02\x00\x03"


def test_a_port_in_use_is_the_users_mistake(running: Running) -> None:
    settings = GatewaySettings(port=running.address[1])
    with pytest.raises(UserError, match="in use"), Running(running.here, settings):
        pass


def test_the_command_says_where_it_is_reports_and_ends_in_order(installation: Installation, tmp_path: Path) -> None:
    installation.save(tmp_path)
    command = "import typer; from tidegate.cli.gateway import run; typer.run(run)"
    arguments = [sys.executable, "-c", command, "--name", "by-command", "--state", str(tmp_path)]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("Gateway by-command is ready at 127.0.0.1:"), line
        port = int(line.split(" ")[5].split(":")[1])
        with Wire(installation.control_urls) as wire, socket.create_connection(("127.0.0.1", port), 10) as device:
            knowledge = Knowledge(wire)
            device.sendall(encode_connect("d", user=installation.mqtt_user, password=installation.mqtt_password))
            assert received(device, 4) == b"\x20\x02\x00\x00"

            def connections() -> int:
                entry = knowledge.get("gateways.by-command")
                return msgspec.json.decode(entry.value, type=GatewayState).connections if entry else 0

            until(lambda: connections() == 1)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert is_closed(device)
            assert process.wait(10) == 0
            assert time.monotonic() - begun < 5
        assert process.stderr.read() == ""
