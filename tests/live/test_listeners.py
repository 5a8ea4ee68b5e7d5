"""Listeners with TLS, WebSocket and PROXY headers: a real broker, and clients and a load balancer that are not ours."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clients import CONNACK, Client
from support.gateways import Running
from support.readings import post
from support.waiting import until

from certificates import Authority
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker, Routes

pytestmark = pytest.mark.live


class Listening:
    """A gateway with one listener of each kind, and those whom it trusts and does not."""

    def __init__(self, installation: Installation, directory: Path) -> None:
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
        self.gateway = Running(installation, GatewaySettings(connect_timeout_s=1.0), listeners=listeners)

    @property
    def refused(self) -> int:
        return sum(self.gateway.state.refused.values())

    def trust(self, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context

    @contextlib.contextmanager
    def client(self, name: str, listener: str) -> Iterator[Client]:
        transport = "websockets" if listener.startswith("ws") else "tcp"
        tls = self.trust(self.device) if listener != "ws" else None
        with self.gateway.client(name, listener=listener, transport=transport, tls=tls) as client:
            yield client

    def raw(self, listener: str, packet: bytes = b"") -> contextlib.AbstractContextManager[socket.socket]:
        return self.gateway.raw(packet, listener=listener)


@pytest.fixture(scope="module")
def listening(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    prepared = Listening(installation, tmp_path_factory.mktemp("listeners"))
    with prepared.gateway:
        yield prepared


@pytest.mark.parametrize("listener", ["tls", "ws", "wss"])
def test_paho_is_served_at_every_listener(listening: Listening, listener: str) -> None:
    topic = f"listeners/{listener}"
    with (
        listening.client(f"hears-{listener}", listener) as hears,
        listening.client(f"says-{listener}", listener) as says,
    ):
        assert hears.subscribed((topic, 1)) == [1]
        payloads = [b"x" * size for size in (1, 100, 126, 70_000)] * 5
        for payload in payloads:
            says.published(topic, payload)
        until(lambda: len(hears.heard) == len(payloads))
    assert hears.payloads == payloads


@pytest.mark.parametrize("listener", ["tls", "wss"])
@pytest.mark.parametrize("certificate", ["none", "stranger"])
def test_without_a_certificate_that_is_trusted_nobody_gets_in(
    listening: Listening, listener: str, certificate: str
) -> None:
    before = listening.refused
    context = listening.trust(listening.stranger if certificate == "stranger" else None)
    with listening.raw(listener) as plain, pytest.raises(ssl.SSLError, match="ALERT"):
        _read_one_byte(context.wrap_socket(plain, server_hostname="localhost"))
    until(lambda: listening.refused == before + 1)


def _read_one_byte(connection: ssl.SSLSocket) -> None:
    with connection:
        connection.recv(1)


def test_a_client_that_does_not_trust_the_gateway_goes(listening: Listening) -> None:
    before = listening.refused
    mistrusting = ssl.create_default_context(cafile=listening.stranger[0])
    with listening.raw("tls") as plain, pytest.raises(ssl.SSLCertVerificationError):
        mistrusting.wrap_socket(plain, server_hostname="localhost")
    until(lambda: listening.refused == before + 1)


def test_who_says_nothing_is_closed_in_time(listening: Listening) -> None:
    begun = time.monotonic()
    with (
        listening.raw("tls") as tls,
        listening.raw("ws", b"GET /mqtt ") as websocket,
        listening.raw("proxied") as proxied,
    ):
        assert [silent.recv(1) for silent in (tls, websocket, proxied)] == [b"", b"", b""]
    assert time.monotonic() - begun < 5


def test_a_proxy_header_goes_before_tls(listening: Listening) -> None:
    header = encode_header(Peer(address=("192.0.2.7", 50_000)), ("127.0.0.1", 8883))
    with (
        listening.raw("proxied tls", header) as plain,
        listening.trust().wrap_socket(plain, server_hostname="localhost") as secret,
    ):
        secret.sendall(listening.gateway.connect_packet("behind"))
        assert secret.recv(4) == CONNACK


def test_http_speaks_tls_as_well(listening: Listening) -> None:
    address = listening.gateway.address_of("https")
    assert post(address, "pump-7", None, tls=listening.trust()).status == 401, "whom nobody knows is answered"


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
def test_the_broker_is_told_who_the_client_behind_a_load_balancer_is(listening: Listening) -> None:
    """HAProxy says who it is, the gateway says it again, and HAProxy in front of the broker has understood it."""
    before, behind = _free_port(), _free_port()
    broker = "{}:{}".format(*listening.gateway.here.mqtt_addresses[0])
    file = listening.directory / "haproxy.cfg"
    file.write_text(
        BALANCER.format(before=before, behind=behind, gateway=listening.gateway.ports["proxied"], broker=broker)
    )
    router = listening.gateway.gateway.gate.router
    told = Broker(name="told", host="127.0.0.1", port=behind, proxy_protocol=True)
    known, router.routes = router.routes, Routes(brokers=(told,))
    balancer = subprocess.Popen(["haproxy", "-f", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        until(lambda: _accepts(before))
        with socket.create_connection(("127.0.0.1", before), 15, source_address=("127.0.0.9", 0)) as client:
            name = "{}:{}".format(*client.getsockname())
            client.sendall(listening.gateway.connect_packet("far-away"))
            assert client.recv(4) == CONNACK
        until(lambda: listening.gateway.state.connections == 0)
    finally:
        router.routes = known
        balancer.terminate()
        said, _ = balancer.communicate(timeout=10)
    assert name in said.split()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
