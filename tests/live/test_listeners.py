"""Listeners with TLS, WebSocket and PROXY headers: a real broker, and clients and a load balancer that are not ours."""

import asyncio
import contextlib
import http.client
import queue
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import uvloop
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from certificates import Authority
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.listening import bind
from tidegate.gateway.server import Gateway
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker, Routes
from tidegate.mqtt.client import encode_connect

pytestmark = pytest.mark.live
CONNACK = b"\x20\x02\x00\x00"


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


class Listeners:
    """A gateway in a thread of its own, with one listener of each kind."""

    def __init__(self, installation: Installation, directory: Path) -> None:
        self.here = installation
        self.directory = directory
        authority = Authority(directory)
        certificate, key = authority.sign("gateway")
        self.device = authority.sign("pump-7")
        self.stranger = Authority(directory, "elsewhere").sign("stranger")
        self.ca = str(authority.certificate)
        tls = {"certificate": certificate, "key": key}
        listeners = {
            "tls": Listener(port=0, **tls, client_ca=self.ca),
            "ws": Listener(port=0, protocol="websocket"),
            "wss": Listener(port=0, protocol="websocket", **tls, client_ca=self.ca),
            "proxied": Listener(port=0, proxy_protocol=True),
            "proxied tls": Listener(port=0, proxy_protocol=True, **tls),
            "https": Listener(port=0, protocol="http", **tls),
        }
        self._settings = GatewaySettings(listeners=tuple(listeners.values()), connect_timeout_s=1.0)
        self._bound = bind(self._settings)
        self.ports = {name: bound.address[1] for name, bound in zip(listeners, self._bound[2:], strict=True)}
        self._outcome: queue.Queue[None] = queue.Queue()
        self._faults: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._outcome.get(timeout=20)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda _, context: self._faults.append(context))
        self.gateway = Gateway(self.here, self._settings, print, bound=self._bound)
        try:
            await self.gateway.start()
            self._outcome.put(None)
            await self._stopping.wait()
        finally:
            await self.gateway.stop()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self._faults == [], "nothing went wrong behind the scenes either"

    @property
    def refused(self) -> int:
        return sum(self.gateway.gate.state("").refused.values())

    def trust(self, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context

    def connect_packet(self, name: str) -> bytes:
        return encode_connect(name, user=self.here.mqtt_user, password=self.here.mqtt_password)

    @contextlib.contextmanager
    def client(self, name: str, listener: str) -> Iterator[paho.Client]:
        transport = "websockets" if listener.startswith("ws") else "tcp"
        client = paho.Client(CallbackAPIVersion.VERSION2, name, transport=transport)
        if listener != "ws":
            client.tls_set_context(self.trust(self.device))
        client.username_pw_set(self.here.mqtt_user, self.here.mqtt_password)
        client.connect("127.0.0.1", self.ports[listener])
        client.loop_start()
        try:
            until(client.is_connected)
            yield client
        finally:
            client.disconnect()
            client.loop_stop()

    @contextlib.contextmanager
    def raw(self, listener: str, first: bytes = b"") -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=15) as connection:
            connection.sendall(first)
            yield connection


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    directory = tmp_path_factory.mktemp("listeners")
    with EmbeddedBrokers(directory / "broker", BrokerSettings(nodes=1, slices=2)) as brokers:
        assert brokers.installation is not None
        running = Listeners(msgspec.structs.replace(brokers.installation, token="secret"), directory)
        try:
            yield running
        finally:
            running.stop()


@pytest.mark.parametrize("listener", ["tls", "ws", "wss"])
def test_paho_is_served_at_every_listener(listeners: Listeners, listener: str) -> None:
    heard: list[bytes] = []
    with (
        listeners.client(f"hears-{listener}", listener) as hears,
        listeners.client(f"says-{listener}", listener) as says,
    ):
        granted = threading.Event()
        hears.on_subscribe = lambda *_: granted.set()
        hears.on_message = lambda _c, _u, message: heard.append(message.payload)
        hears.subscribe(f"listeners/{listener}", 1)
        assert granted.wait(15)
        payloads = [b"x" * size for size in (1, 100, 126, 70_000)] * 5
        for payload in payloads:
            says.publish(f"listeners/{listener}", payload, 1).wait_for_publish(15)
        until(lambda: len(heard) == len(payloads))
    assert heard == payloads


@pytest.mark.parametrize("listener", ["tls", "wss"])
@pytest.mark.parametrize("certificate", ["none", "stranger"])
def test_without_a_certificate_that_is_trusted_nobody_gets_in(
    listeners: Listeners, listener: str, certificate: str
) -> None:
    before = listeners.refused
    context = listeners.trust(listeners.stranger if certificate == "stranger" else None)
    with listeners.raw(listener) as plain, pytest.raises(ssl.SSLError, match="ALERT"):
        _read_one_byte(context.wrap_socket(plain, server_hostname="localhost"))
    until(lambda: listeners.refused == before + 1)


def _read_one_byte(connection: ssl.SSLSocket) -> None:
    with connection:
        connection.recv(1)


def test_a_client_that_does_not_trust_the_gateway_goes(listeners: Listeners) -> None:
    before = listeners.refused
    mistrusting = ssl.create_default_context(cafile=listeners.stranger[0])
    with listeners.raw("tls") as plain, pytest.raises(ssl.SSLCertVerificationError):
        mistrusting.wrap_socket(plain, server_hostname="localhost")
    until(lambda: listeners.refused == before + 1)


def test_who_says_nothing_is_closed_in_time(listeners: Listeners) -> None:
    begun = time.monotonic()
    with (
        listeners.raw("tls") as tls,
        listeners.raw("ws", b"GET /mqtt ") as websocket,
        listeners.raw("proxied") as proxied,
    ):
        assert [silent.recv(1) for silent in (tls, websocket, proxied)] == [b"", b"", b""]
    assert time.monotonic() - begun < 5


def test_a_proxy_header_goes_before_tls(listeners: Listeners) -> None:
    header = encode_header(Peer(address=("192.0.2.7", 50_000)), ("127.0.0.1", 8883))
    with (
        listeners.raw("proxied tls", header) as plain,
        listeners.trust().wrap_socket(plain, server_hostname="localhost") as secret,
    ):
        secret.sendall(listeners.connect_packet("behind"))
        assert secret.recv(4) == CONNACK


def test_http_speaks_tls_as_well(listeners: Listeners) -> None:
    connection = http.client.HTTPSConnection(
        "localhost", listeners.ports["https"], context=listeners.trust(), timeout=15
    )
    with contextlib.closing(connection):
        body = b'{"value": 21.5, "boot": 1, "seq": 1}'
        connection.request("POST", "/v1/telemetry/pump-7", body, {"Authorization": "Bearer secret"})
        assert connection.getresponse().status == 204


BALANCER = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend before
    bind 127.0.0.1:{before}
    default_backend gateway
backend gateway
    server one 127.0.0.1:{gateway} send-proxy-v2
frontend behind
    bind 127.0.0.1:{behind} accept-proxy
    log stdout format raw local0
    log-format "%ci:%cp"
    default_backend broker
backend broker
    server one {broker}
"""


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no haproxy here: install the Debian package")
def test_the_broker_is_told_who_the_client_behind_a_load_balancer_is(listeners: Listeners) -> None:
    """HAProxy says who it is, the gateway says it again, and HAProxy in front of the broker has understood it."""
    before, behind = _free_port(), _free_port()
    broker = "{}:{}".format(*listeners.here.mqtt_addresses[0])
    file = listeners.directory / "haproxy.cfg"
    file.write_text(BALANCER.format(before=before, behind=behind, gateway=listeners.ports["proxied"], broker=broker))
    router, told = (
        listeners.gateway.gate.router,
        Broker(name="told", host="127.0.0.1", port=behind, proxy_protocol=True),
    )
    known, router.routes = router.routes, Routes(brokers=(told,))
    balancer = subprocess.Popen(["haproxy", "-f", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        until(lambda: _accepts(before))
        with socket.create_connection(("127.0.0.1", before), 15, source_address=("127.0.0.9", 0)) as client:
            name = "{}:{}".format(*client.getsockname())
            client.sendall(listeners.connect_packet("far-away"))
            assert client.recv(4) == CONNACK
    finally:
        router.routes = known
        until(lambda: listeners.gateway.gate.state("").connections == 0)
        balancer.terminate()
        said, _ = balancer.communicate(timeout=10)
    assert name in said.split()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
