"""Enhanced authentication of MQTT 5: until the broker's CONNACK, AUTH passes the gateway both ways."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import bus
from support.clients import is_closed
from support.gateways import Running
from support.scripted import Peer, scripted_broker
from support.waiting import until

from tidegate.bus.documents import ROUTES
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker, Routes
from tidegate.mqtt.packets import Auth, Connack, Connect, Disconnect, Ping, Pong, encode
from tidegate.mqtt.properties import AUTHENTICATION_DATA, AUTHENTICATION_METHOD, Properties

pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]
CONTINUE, NOT_AUTHORIZED, PROTOCOL_ERROR = 0x18, 0x87, 0x82


def proof(data: bytes) -> Properties:
    return Properties(values={AUTHENTICATION_METHOD: b"riddle", AUTHENTICATION_DATA: data})


def connect(name: str) -> Connect:
    return Connect(version=5, client_id=name.encode(), clean=True, keep_alive_s=60, properties=proof(b"hello"))


def auth(data: bytes) -> Auth:
    return Auth(code=CONTINUE, properties=proof(data))


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Running]:
    with Running(installation, GatewaySettings(name="proving", broker_timeout_s=2.0, admission_s_max=2.0)) as gateway:
        yield gateway
    bus.delete(installation, ROUTES)


@contextmanager
def client(running: Running, broker: Broker, name: str) -> Iterator[Peer]:
    """That has just said CONNECT."""
    running.put(ROUTES, Routes(brokers=(broker,)))
    until(lambda: [one.port for one in running.gateway.gate.router.routes.brokers] == [broker.port])
    with running.raw(encode(connect(name), 5)) as connection:
        yield Peer(connection)


def test_two_rounds_of_auth_pass_both_ways_and_then_everything_does(running: Running) -> None:
    def script(peer: Peer) -> None:
        assert peer.hears() == connect("proves-itself")
        for question, answer in ((b"one", b"1"), (b"two", b"2")):
            peer.says(auth(question))
            assert peer.hears() == auth(answer)
        peer.says(Connack(session_present=False, code=0, properties=proof(b"welcome")))
        assert peer.hears() == Ping()
        peer.says(Pong())
        assert peer.hears() == Disconnect()

    with scripted_broker(script) as broker, client(running, broker, "proves-itself") as device:
        for question, answer in ((b"one", b"1"), (b"two", b"2")):
            assert device.hears() == auth(question)
            device.says(auth(answer))
        taken = device.hears()
        assert isinstance(taken, Connack)
        assert (taken.code, taken.properties.values[AUTHENTICATION_DATA]) == (0, b"welcome")
        device.says(Ping())
        assert device.hears() == Pong()
        device.says(Disconnect())


def test_a_broker_that_is_not_convinced_says_so_itself(running: Running) -> None:
    def script(peer: Peer) -> None:
        peer.hears()
        peer.says(auth(b"one"))
        assert peer.hears() == auth(b"wrong")
        peer.says(Connack(session_present=False, code=NOT_AUTHORIZED))

    with scripted_broker(script) as broker, client(running, broker, "guesses") as device:
        assert device.hears() == auth(b"one")
        device.says(auth(b"wrong"))
        assert device.hears() == Connack(session_present=False, code=NOT_AUTHORIZED)
        assert is_closed(device.connection)


def test_a_device_that_thinks_for_longer_than_a_broker_may_take_is_not_cut_off(running: Running) -> None:
    def script(peer: Peer) -> None:
        peer.hears()
        peer.says(auth(b"one"))
        peer.hears()
        peer.says(Connack(session_present=False, code=0))
        assert peer.hears() == Disconnect()

    with scripted_broker(script) as broker, client(running, broker, "thinks") as device:
        assert device.hears() == auth(b"one")
        assert not is_closed(device.connection, 3.0)
        device.says(auth(b"1"))
        taken = device.hears()
        assert isinstance(taken, Connack)
        assert taken.code == 0
        device.says(Disconnect())


def test_a_device_that_is_being_asked_may_say_nothing_else(running: Running) -> None:
    def script(peer: Peer) -> None:
        peer.hears()
        peer.says(auth(b"one"))
        assert is_closed(peer.connection)

    with scripted_broker(script) as broker, client(running, broker, "talks") as device:
        assert device.hears() == auth(b"one")
        device.says(Ping())
        refused = device.hears()
        assert isinstance(refused, Connack | Disconnect)
        assert refused.code == PROTOCOL_ERROR
        assert is_closed(device.connection)
