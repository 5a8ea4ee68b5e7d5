"""MQTT clients that are not ours: paho, and bare sockets for what paho would never do."""

import contextlib
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from support.waiting import until
from tidegate.model.installation import Installation

CONNACK = b"\x20\x02\x00\x00"
ACKNOWLEDGED_S_MAX = 20.0


class Client(paho.Client):
    """A paho client that keeps what it heard."""

    def __init__(
        self, name: str, *, clean: bool = True, version: int = 4, transport: Literal["tcp", "websockets"] = "tcp"
    ) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            name,
            clean_session=None if version == 5 else clean,
            protocol=MQTTProtocolVersion(version),
            transport=transport,
        )
        self.heard: list[tuple[str, bytes]] = []
        self.granted: list[list[int]] = []
        self.presents: list[bool] = []  # whether a session was there, at each connect
        self.on_connect = lambda _c, _u, flags, _r, _p: self.presents.append(flags.session_present)
        self.on_message = lambda _c, _u, message: self.heard.append((message.topic, bytes(message.payload)))
        self.on_subscribe = lambda _c, _u, _m, codes, _p: self.granted.append([code.value for code in codes])

    @property
    def payloads(self) -> list[bytes]:
        return [payload for _, payload in self.heard]

    def subscribed(self, *filters: tuple[str, int]) -> list[int]:
        before = len(self.granted)
        self.subscribe(list(filters))
        until(lambda: len(self.granted) > before)
        return self.granted[-1]

    def published(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False) -> None:
        self.publish(topic, payload, qos, retain).wait_for_publish(ACKNOWLEDGED_S_MAX)


@contextlib.contextmanager
def connected(
    here: Installation,
    name: str,
    *,
    address: tuple[str, int] | None = None,
    clean: bool = True,
    version: int = 4,
    will: str = "",
    tls: ssl.SSLContext | None = None,
    transport: Literal["tcp", "websockets"] = "tcp",
    **connecting: Any,
) -> Iterator[Client]:
    """A client at the first broker, or at another address; ``connecting`` is for paho's own connect."""
    client = Client(name, clean=clean, version=version, transport=transport)
    if will:
        client.will_set(will, b"gone", qos=1)
    if tls is not None:
        client.tls_set_context(tls)
    client.username_pw_set(here.mqtt_user, here.mqtt_password)
    client.reconnect_delay_set(1, 1)
    client.connect(*(address or here.mqtt_addresses[0]), **connecting)
    client.loop_start()
    try:
        until(client.is_connected)
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def publish_all(here: Installation, name: str, messages: Iterable[tuple[str, bytes]]) -> None:
    """At the first broker, in order; back when all are acknowledged."""
    with connected(here, name) as client:
        for sent in [client.publish(topic, payload, qos=1) for topic, payload in messages]:
            sent.wait_for_publish(ACKNOWLEDGED_S_MAX)


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        assert part, f"closed after {data!r}"
        data += part
    return data


def is_closed(connection: socket.socket, timeout_s: float = 15.0) -> bool:
    before = connection.gettimeout()
    connection.settimeout(timeout_s)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    finally:
        connection.settimeout(before)
