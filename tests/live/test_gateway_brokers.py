"""Brokers behind a gateway that hang, die, or are not there."""

import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support import bus
from support.clients import is_closed, received
from support.gateways import STRICT, Running
from support.readings import READING, TOKEN, post
from support.waiting import until

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import ROUTES
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker, Routes
from tidegate.mqtt.client import encode_publish

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBrokers]:
    """To be paused and killed."""
    with EmbeddedBrokers(tmp_path_factory.mktemp("brokers"), BrokerSettings(nodes=1, slices=2)) as started:
        yield started


@pytest.fixture(scope="module")
def disturbed(brokers: EmbeddedBrokers) -> Iterator[Running]:
    """A gateway before them."""
    assert brokers.installation is not None
    here = msgspec.structs.replace(brokers.installation, token=TOKEN)
    with Running(here, STRICT) as gateway:
        yield gateway


def test_a_broker_that_does_not_read_stops_its_devices_from_sending(
    disturbed: Running, brokers: EmbeddedBrokers
) -> None:
    with disturbed.raw(disturbed.connect_packet("eager")) as eager:
        received(eager, 4)
        packet = encode_publish(b"telemetry/eager", bytes(50_000))
        brokers.pause_broker(0)
        try:
            eager.settimeout(2)
            with pytest.raises(TimeoutError):
                eager.sendall(packet * 1_000)
            device = disturbed.device("eager")
            assert device is not None
            assert device.side is not None
            assert device.side.transport is not None
            assert device.side.transport.get_write_buffer_size() < 1_500_000
        finally:
            brokers.resume_broker(0)


def test_a_broker_that_dies_takes_its_devices_along_and_they_come_back(
    disturbed: Running, brokers: EmbeddedBrokers
) -> None:
    with disturbed.raw(disturbed.connect_packet("orphan")) as orphan:
        received(orphan, 4)
        brokers.kill_broker(0)
        assert is_closed(orphan)
    with disturbed.raw(disturbed.connect_packet("orphan")) as orphan:
        assert received(orphan, 4) == b"\x20\x02\x00\x03"
    brokers.start_broker(0)
    with disturbed.client("orphan") as client:
        client.published("telemetry/orphan", READING)
    until(lambda: post(disturbed, "web-1", READING)[0] == 204)
    until(lambda: disturbed.state.brokers == {"broker-1": 1})  # HTTP ingest alone


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
            choosing.put(ROUTES, Routes(brokers=(gone, mute, there)))
            until(lambda: len(choosing.gateway.gate.router.routes.brokers) == 3)
            with choosing.client("persistent") as client:
                client.published("telemetry/persistent", READING)
                assert choosing.state.brokers["there"] == 1
                choosing.put(ROUTES, Routes(brokers=(gone, msgspec.structs.replace(there, healthy=False))))
                until(lambda: len(choosing.gateway.gate.router.routes.brokers) == 2)
                with choosing.raw(choosing.connect_packet("unlucky")) as unlucky:
                    assert received(unlucky, 4) == b"\x20\x02\x00\x03"
                    assert is_closed(unlucky)
                client.published("telemetry/persistent", READING)
            assert choosing.refused("no broker available") == 1
            bus.put_raw(installation, "routes", b'{"brokers": 7}')
            until(lambda: any("'routes' on the control bus is damaged" in said for said in choosing.said))
            assert len(choosing.gateway.gate.router.routes.brokers) == 2, "the last good ones stay"
    bus.delete(installation, ROUTES)
    # Nobody says any routes now: the gateways go back to the installation's own brokers.
    until(lambda: [broker.name for broker in running.gateway.gate.router.routes.brokers] == ["broker-1"])


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
            "The control bus does not answer: until it does, clients go to the installation's brokers."
        ]
        assert post(alone, "web-1", READING)[:2] == (503, "No broker acknowledged the reading within 0.3 s.\n")
        with alone.raw(alone.connect_packet("lonely")) as lonely:
            assert received(lonely, 4) == b"\x20\x02\x00\x03"
