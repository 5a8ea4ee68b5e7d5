"""A broker that follows a script on a real socket, for what no broker at hand does."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from support.clients import received
from tidegate.model.routes import Broker
from tidegate.mqtt.packets import Packet, encode, parse

TIMEOUT_S = 10.0
_PROPERTIES_MAX = 64


class Peer:
    """One end of a connection that speaks MQTT 5, packet by packet."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        self.connection = connection

    def says(self, packet: Packet) -> None:
        self.connection.sendall(encode(packet, 5))

    def hears(self) -> Packet:
        """The next packet; it has to be a short one."""
        first, length = received(self.connection, 2)
        assert length < 0x80
        return parse(first, received(self.connection, length) if length else b"", 5, properties_max=_PROPERTIES_MAX)


@contextlib.contextmanager
def scripted_broker(script: Callable[[Peer], None], *, name: str = "scripted") -> Iterator[Broker]:
    """The script runs for the first connection that comes. What fails in it fails the test."""
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            connection, _ = listener.accept()
            with connection:
                script(Peer(connection))
        except BaseException as failure:
            failures.append(failure)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Broker(name=name, host="127.0.0.1", port=listener.getsockname()[1], mqtt5=True)
        thread.join(2 * TIMEOUT_S)
    if failures:
        raise failures[0]
