"""Many MQTT connections in one process, opened quickly and driven without an event loop: a load must cost little.

Sockets are plain or TLS ones, and every client has said CONNECT and was accepted. What they publish afterwards is built
beforehand, so that a message costs its sender one system call.
"""

import select
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence

from tidegate.bus.issued import Credentials
from tidegate.model.errors import TidegateError
from tidegate.model.identity import OWN_NAME
from tidegate.mqtt.client import ConnectionAnswered, Decoder, Event, encode_connect, encode_publish

KEEP_ALIVE_S = 3_600
# So many at once wait for their CONNACK: fewer than any of the listeners has room for.
OPENING_MAX = 50
ANSWER_S_MAX = 60.0
MARKER_ID = 1
# No slice keeps what is published below it. A gateway lets a device publish there that has this among its patterns.
TOPICS = "bench"
IDENTITY = {"devices": {"publishes": [f"{TOPICS}/{OWN_NAME}"], "subscribes": []}}


class LoadClient:
    """One connection. ``packet`` is what it publishes, again and again."""

    def __init__(self, name: str, connected: socket.socket, payload: bytes) -> None:
        self.socket = connected
        self.topic = f"{TOPICS}/{name}".encode()
        self.packet = encode_publish(self.topic, payload)
        self._decoder = Decoder()

    def events(self) -> list[Event]:
        """What the peer said, as far as it is there."""
        try:
            data = self.socket.recv(65_536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return []
        if not data:
            raise TidegateError("A connection of the load was closed by its peer: read the peer's log for the reason.")
        return self._decoder.receive(data)

    def await_events(self, timeout_s: float = ANSWER_S_MAX) -> list[Event]:
        """The next that the peer says."""
        while not (events := self.events()):
            if not self._is_ready(select.POLLIN, timeout_s):
                raise TidegateError(f"A connection of the load had no answer within {timeout_s:.0f} s.")
        return events

    def send_all(self, data: bytes | memoryview) -> None:
        """Send it whole, however long that takes."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._is_ready(select.POLLOUT, ANSWER_S_MAX)

    def _is_ready(self, event: int, timeout_s: float) -> bool:
        """Whether it is within the time. Poll, because select knows only the first 1,024 open files."""
        poll = select.poll()
        poll.register(self.socket, event)
        return bool(poll.poll(timeout_s * 1e3))


def open_clients(
    address: tuple[str, int],
    count: int,
    *,
    name: str,
    credentials: Credentials,
    tls: ssl.SSLContext | None = None,
    payload: bytes = b"",
    send_buffer_bytes: int | None = None,
) -> list[LoadClient]:
    """Connected, accepted, not blocking."""
    clients: list[LoadClient] = []
    try:
        for first in range(0, count, OPENING_MAX):
            for number in range(first, min(count, first + OPENING_MAX)):
                own_name = f"{name}-{number}"
                client = LoadClient(own_name, _connect(address, tls, send_buffer_bytes), payload)
                clients.append(client)
                client.send_all(_encoded_connect(own_name, credentials))
            for client in clients[first:]:
                _await_acceptance(client, address)
    except BaseException:
        for client in clients:
            client.socket.close()
        raise
    return clients


def _encoded_connect(name: str, credentials: Credentials) -> bytes:
    user, password = credentials(name)
    return encode_connect(name, user=user, password=password, keep_alive_s=KEEP_ALIVE_S)


def _await_acceptance(client: LoadClient, address: tuple[str, int]) -> None:
    client.socket.setblocking(False)
    match client.await_events():
        case [ConnectionAnswered(code=0)]:
            pass
        case other:
            raise TidegateError(f"{address[0]}:{address[1]} does not accept the load's clients: {other}.")


def tls_context(authority: str) -> ssl.SSLContext:
    """A client that believes the benchmark's own certificate, and speaks TLS 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(authority)
    return context


def cipher_of(client: LoadClient) -> str:
    """What was agreed upon, or nothing."""
    agreed = client.socket.cipher() if isinstance(client.socket, ssl.SSLSocket) else None
    return agreed[0] if agreed else ""


def await_arrival(clients: Sequence[LoadClient]) -> None:
    """Return when the broker has everything: each client ends with a QoS 1 message, which is answered in its turn."""
    for client in clients:
        client.send_all(encode_publish(client.topic, b"", packet_id=MARKER_ID))
    for client in clients:
        client.await_events()


def writable(clients: Sequence[LoadClient], until: Callable[[], bool]) -> Iterator[LoadClient]:
    """The clients that can send, over and over."""
    poll, by_number = select.epoll(), {client.socket.fileno(): client for client in clients}
    try:
        for number in by_number:
            poll.register(number, select.EPOLLOUT)
        while not until():
            for number, _ in poll.poll(0.1):
                yield by_number[number]
    finally:
        poll.close()


def _connect(address: tuple[str, int], tls: ssl.SSLContext | None, send_buffer_bytes: int | None) -> socket.socket:
    plain = socket.socket()
    if send_buffer_bytes is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    plain.settimeout(ANSWER_S_MAX)
    plain.connect(address)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain if tls is None else tls.wrap_socket(plain, server_hostname=address[0])
