"""Many connections that are only held: each has said CONNECT with a will, and whoever is closed is seen at once."""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self

from tidegate.mqtt.connect import Connect, Will
from tidegate.mqtt.encoding import encode

ANSWER_S_MAX = 30.0
WILL = b"a will"
_CONNACK = 0x20
_LOOK_MS = 50


def connect_packet(name: str, password: str, version: int) -> bytes:
    """With a will on a topic of its own, which an application would hear."""
    will = Will(topic=will_topic(name).encode(), payload=WILL, qos=0, retain=False)
    said = Connect(
        version=version,
        client_id=name.encode(),
        clean=True,
        keep_alive_s=600,
        will=will,
        user=name.encode(),
        password=password.encode(),
    )
    return encode(said, version)


def will_topic(name: str) -> str:
    return f"telemetry/{name}/will"


def version_of(number: int) -> int:
    """By turns."""
    return 5 if number % 2 else 4


def opened(address: tuple[str, int], packet: bytes) -> tuple[socket.socket, int | None]:
    """The connection, and the code of its CONNACK; None where it was closed instead."""
    connection = socket.create_connection(address, ANSWER_S_MAX)
    connection.sendall(packet)
    answer = b""
    with contextlib.suppress(ConnectionError):
        while len(answer) < 4 and (data := connection.recv(4 - len(answer))):
            answer += data
    return connection, answer[3] if len(answer) == 4 and answer[0] == _CONNACK else None


class HeldClients:
    """Watched by a thread. ``closed_s`` says when each was closed (monotonic), by name."""

    def __init__(self, sockets: dict[str, socket.socket]) -> None:
        self._sockets = sockets
        self.closed_s: dict[str, float] = {}
        self._ends = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._watch.join()
        for connection in self._sockets.values():
            connection.close()

    def closed(self, names: Iterable[str]) -> list[float]:
        """When those of them were closed that are."""
        return [self.closed_s[name] for name in names if name in self.closed_s]

    def _look(self) -> None:
        poll, names = select.poll(), {one.fileno(): name for name, one in self._sockets.items()}
        for number in names:
            poll.register(number, select.POLLIN)
        while not self._ends.is_set():
            for number, _ in poll.poll(_LOOK_MS):
                if self._is_closed(names[number]):
                    self.closed_s[names[number]] = time.monotonic()
                    poll.unregister(number)

    def _is_closed(self, name: str) -> bool:
        """What comes before the end, like DISCONNECT, is read and let go."""
        try:
            return not self._sockets[name].recv(65_536)
        except ConnectionError:
            return True


@contextlib.contextmanager
def held(address: tuple[str, int], packets: dict[str, bytes]) -> Iterator[HeldClients]:
    """All of them, accepted."""
    sockets: dict[str, socket.socket] = {}
    try:
        for name, packet in packets.items():
            sockets[name], code = opened(address, packet)
            assert code == 0, f"{name} is not let in: {code}"
        with HeldClients(sockets) as clients:
            yield clients
    finally:
        for connection in sockets.values():
            connection.close()
