"""Layers between real sockets and a protocol behind them, on the event loop that they have in production."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import cast

import pytest
import uvloop
from websockets.asyncio.client import connect
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from certificates import Authority
from tidegate.gateway.layers.layer import Peer, peer_of
from tidegate.gateway.layers.layered import LayeredTransport
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.listening import bind, serve
from tidegate.gateway.settings import GatewaySettings

CLIENT = Peer(address=("192.0.2.7", 50_000))
BALANCER_SAYS = encode_header(CLIENT, ("127.0.0.1", 8883))


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo(asyncio.Protocol):
    """Says again what it hears, as a device's connection would use its transport."""

    def __init__(self, *, keeps_open: bool = False) -> None:
        self.heard = 0
        self.events: list[str] = []
        self.gone = asyncio.get_running_loop().create_future()
        self._keeps_open = keeps_open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=65_536)

    def data_received(self, data: bytes) -> None:
        self.heard += len(data)
        if data == b"close":
            self.transport.close()
        else:
            self.transport.write(data)

    def eof_received(self) -> bool:
        self.events.append("eof")
        if self._keeps_open:
            self.transport.write(b"last words")
            asyncio.get_running_loop().call_later(0.01, self.transport.close)
        return self._keeps_open

    def pause_writing(self) -> None:
        self.events.append("pause")
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set_result(None)

    def end(self, reason: str) -> None:
        if not self.transport.is_closing():
            self.events.append(reason)
            self.transport.close()


class Deaf(Echo):
    """Goes on reading while nothing can be written."""

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        pass


class Listening:
    def __init__(self, address: tuple[str, int], trust: ssl.SSLContext) -> None:
        self.address = address
        self.trust = trust
        self.inner: list[Echo] = []

    async def connected(self, first: bytes = b"", *, tls: bool = True) -> Streams:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, self.address)
        reader, writer = await asyncio.open_connection(sock=client)
        writer.write(first)
        if tls:
            await writer.start_tls(self.trust, server_hostname="localhost")
        return reader, writer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("layered")
    Authority(directory).sign("gateway")
    return directory


@contextlib.asynccontextmanager
async def listening(
    files: Path, make: Callable[[], Echo] = Echo, *, tls: bool = True, **options: object
) -> AsyncIterator[Listening]:
    pair = {"certificate": str(files / "gateway.pem"), "key": str(files / "gateway.key")} if tls else {}
    settings = GatewaySettings(listeners=(Listener(port=0, **pair, **options),))  # type: ignore[arg-type]
    mqtt, http, bound = bind(settings)
    mqtt.sock.close()
    http.sock.close()
    opened = Listening(bound.address, ssl.create_default_context(cafile=str(files / "authority.pem")))

    def made() -> Echo:
        opened.inner.append(make())
        return opened.inner[-1]

    server = await serve(bound, settings, made)
    try:
        yield opened
        async with asyncio.timeout(5):
            await asyncio.gather(*(inner.gone for inner in opened.inner))
    finally:
        server.close()
        await server.wait_closed()


def run(test: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test, 10))


def test_plain_mqtt_has_nothing_in_between(files: Path) -> None:
    async def test() -> None:
        async with listening(files, tls=False) as here:
            reader, writer = await here.connected(b"hello", tls=False)
            assert await reader.readexactly(5) == b"hello"
            (inner,) = here.inner
            assert not isinstance(inner.transport, LayeredTransport)
            assert peer_of(inner.transport) == Peer(address=writer.get_extra_info("sockname"))
            writer.close()

    run(test())


def test_what_is_said_through_a_proxy_header_and_tls_comes_back(files: Path) -> None:
    async def test() -> None:
        async with listening(files, proxy_protocol=True) as here:
            reader, writer = await here.connected(BALANCER_SAYS)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            (inner,) = here.inner
            assert peer_of(inner.transport) == Peer(address=CLIENT.address, tls="TLSv1.3")
            assert inner.transport.get_extra_info("peername") == writer.get_extra_info("sockname")
            assert not inner.transport.can_write_eof()
            writer.write(b"close")
            assert await reader.read() == b"", "closed with a farewell: a cut would be an error"
            writer.close()
            assert inner.events == []

    run(test())


def test_who_reads_slowly_is_not_read_meanwhile(files: Path) -> None:
    async def test() -> None:
        async with listening(files) as here:
            reader, writer = await here.connected()
            said = bytes(range(256)) * 20_000
            writer.write(said)
            while "pause" not in here.inner[0].events:
                await asyncio.sleep(0.001)
            assert here.inner[0].heard < len(said)
            assert await reader.readexactly(len(said)) == said
            writer.close()

    run(test())


@pytest.mark.parametrize("tls", [False, True])
def test_a_websocket_client_of_others_is_served(files: Path, tls: bool) -> None:
    async def test() -> None:
        async with listening(files, tls=tls, protocol="websocket") as here:
            options = {"ssl": here.trust, "server_hostname": "localhost"} if tls else {}
            uri = f"{'wss' if tls else 'ws'}://127.0.0.1:{here.address[1]}/mqtt"
            async with connect(uri, subprotocols=[Subprotocol("mqtt")], **options) as client:
                await client.send(b"hello")
                assert await client.recv() == b"hello"
                here.inner[0].transport.write(b"")
                await client.send(b"more")
                assert await client.recv() == b"more", "nothing is not sent as a message of its own"
                await (await client.ping())
                await client.send(b"close")
                await client.wait_closed()
            assert client.close_code == CloseCode.NORMAL_CLOSURE
            assert here.inner[0].events == []

    run(test())


def test_who_speaks_no_websocket_hears_why_before_it_is_closed(files: Path) -> None:
    async def test() -> None:
        async with listening(files, protocol="websocket") as here:
            reader, writer = await here.connected()
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 404 Not Found\r\n")
            writer.close()
            assert here.inner[0].events == ["bad WebSocket"]
            assert here.inner[0].heard == 0

    run(test())


@pytest.mark.parametrize(
    ("first", "reason"),
    [(b"PROXY TCP4 ", "PROXY version 1 is not spoken"), (BALANCER_SAYS + b"MQTT!", "TLS handshake failed")],
)
def test_a_problem_of_a_layer_ends_the_connection(files: Path, first: bytes, reason: str) -> None:
    async def test() -> None:
        async with listening(files, proxy_protocol=True) as here:
            reader, writer = await here.connected(first, tls=False)
            assert await reader.read() == b""
            writer.close()
            assert here.inner[0].events == [reason]

    run(test())


@pytest.mark.parametrize("keeps_open", [False, True])
@pytest.mark.parametrize("says_farewell", [False, True])
def test_a_client_that_ends_is_heard_once(files: Path, keeps_open: bool, says_farewell: bool) -> None:
    """A blocking socket, because asyncio's cannot close only their sending half with TLS."""

    def client(here: Listening) -> bytes:
        plain = socket.create_connection(here.address, timeout=5)
        with here.trust.wrap_socket(plain, server_hostname="localhost") as secret:
            secret.sendall(b"hello")
            heard = secret.recv(5)
            if says_farewell:
                with contextlib.suppress(ssl.SSLError):  # the last words come before the farewell that it waits for
                    secret.unwrap()
            else:
                secret.shutdown(socket.SHUT_WR)
            return heard

    async def test() -> None:
        async with listening(files, lambda: Echo(keeps_open=keeps_open)) as here:
            assert await asyncio.to_thread(client, here) == b"hello"
            await here.inner[0].gone
            assert here.inner[0].events == ["eof"]

    run(test())


def test_who_asks_and_does_not_read_is_ended(files: Path) -> None:
    async def test() -> None:
        async with listening(files, Deaf, tls=False, protocol="websocket") as here:
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                client.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, here.address)
                fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
                await loop.sock_sendall(client, f"GET /mqtt HTTP/1.1\r\n{fields}{key}".encode())
                pings = (b"\x89\xfd" + bytes(4) + bytes(125)) * 500
                with contextlib.suppress(ConnectionError):
                    while not here.inner or not here.inner[0].events:
                        await loop.sock_sendall(client, pings)
            assert here.inner[0].events == ["answers are not read"]

    run(test())
