"""One MQTT client of the matrix: paho, on any transport, and what it is told in words."""

import contextlib
import queue
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from paho.mqtt import properties as paho
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes

from tidegate_bench.identity.cells import Transport
from tidegate_bench.identity.oracle import CLOSED, CLOSED_EARLY
from tidegate_bench.identity.proofs import Proof
from tidegate_bench.rig.clients import tls_context

ANSWER_S_MAX = 15.0
NO_ANSWER = "no answer"
REFUSED_FROM = 0x80
_PATH = "/mqtt"
# paho says codes of 3.1.1 in the words of 5.
_BEFORE_5 = {0x84: 1, 0x85: 2, 0x88: 3, 0x86: 4, 0x87: 5}


class Message(NamedTuple):
    topic: str
    payload: bytes
    retained: bool


class Told(NamedTuple):
    """``granted``: whether all that was asked for is; ``any_granted``: whether anything is."""

    words: str
    granted: bool
    any_granted: bool


class MatrixClient:
    """Belongs to one thread. ``heard`` grows while it is connected."""

    def __init__(self, transport: Transport, proof: Proof, client_id: str, authority: str | None = None) -> None:
        self._five = transport.version == 5
        self.heard: list[Message] = []
        self._events: queue.Queue[tuple[str, int, Sequence[int]]] = queue.Queue()
        self._is_closed = False
        self._client = client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=transport.version,  # type: ignore[arg-type]
            transport="websockets" if transport.layer == "websocket" else "tcp",
            reconnect_on_failure=False,
        )
        client.ws_set_options(path=_PATH)
        if proof.user is not None:
            client.username_pw_set(proof.user, proof.password)
        if authority is not None:
            client.tls_set_context(tls_of(authority, proof))
        client.on_connect = lambda _, __, ___, code, ____: self._events.put(("CONNACK", 0, (code.value,)))
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_subscribe = lambda _, __, mid, codes, ___: self._events.put(("SUBACK", mid, _values(codes)))
        client.on_publish = lambda _, __, mid, code, ___: self._events.put(("PUBACK", mid, (code.value,)))

    def leave_will(self, topic: str, payload: bytes) -> None:
        self._client.will_set(topic, payload, qos=1)

    # -- what it does

    def open(self, address: tuple[str, int]) -> Told:
        try:
            self._client.connect(*address, keepalive=60)
        except OSError:
            return Told(CLOSED_EARLY, False, False)
        self._client.loop_start()
        kind, codes = self._answer("CONNACK", 0)
        if kind != "CONNACK":
            return Told(CLOSED_EARLY if kind == CLOSED else kind, False, False)
        code = codes[0]
        shown = f"0x{code:02x}" if self._five else str(_BEFORE_5.get(code, code))
        return Told(f"CONNACK {shown}", code == 0, code == 0)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False, alias: int = 0) -> Told:
        """At QoS 1, which is answered."""
        sent = self._client.publish(topic, payload, 1, retain, _aliased(alias))
        return told_of(*self._answer("PUBACK", sent.mid))

    def throw(self, topic: str, payload: bytes, *, qos: int, alias: int = 0) -> None:
        """Publish, and do not wait for what is said of it."""
        self._client.publish(topic, payload, qos, False, _aliased(alias))

    def subscribe(self, *filters: str) -> Told:
        _, mid = self._client.subscribe([(one, 1) for one in filters])
        return told_of(*self._answer("SUBACK", mid or 0))

    def hears(self, topic: str, within_s: float) -> bool:
        """Whether a message of the topic comes in time."""
        until_s = time.monotonic() + within_s
        while not any(message.topic == topic for message in self.heard):
            if self._is_closed or time.monotonic() > until_s:
                return False
            time.sleep(0.01)
        return True

    def vanish(self) -> None:
        """Without a farewell: a will is due."""
        connection = self._client.socket()
        if isinstance(connection, socket.socket):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._client.loop_stop()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    # -- what it is told

    def _on_disconnect(self, _: Any, __: Any, flags: Any, code: Any, ___: Any) -> None:
        said = (code.value,) if flags.is_disconnect_packet_from_server else ()
        self._is_closed = True
        self._events.put((CLOSED, 0, said))

    def _on_message(self, _: Any, __: Any, message: MQTTMessage) -> None:
        self.heard.append(Message(message.topic, bytes(message.payload), bool(message.retain)))

    def _answer(self, kind: str, mid: int) -> tuple[str, Sequence[int]]:
        """The answer to a packet, or how the connection ended instead."""
        until_s = time.monotonic() + ANSWER_S_MAX
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                found, of, codes = self._events.get(timeout=left_s)
            except queue.Empty:
                break
            if found == CLOSED:
                self._events.put((found, of, codes))  # whoever asks next shall know as well
                return found, codes
            if (found, of) == (kind, mid):
                return found, codes
        return NO_ANSWER, ()


def told_of(kind: str, codes: Sequence[int]) -> Told:
    """In words: of an acknowledgement with its codes, or of an end."""
    if kind == CLOSED and codes:
        return Told(f"DISCONNECT 0x{codes[0]:02x}", False, False)
    if kind in (CLOSED, NO_ANSWER):
        return Told(kind, False, False)
    granted = [code < REFUSED_FROM for code in codes]
    words = " ".join(dict.fromkeys(f"0x{code:02x}" for code in codes))
    return Told(f"{kind} {words}", all(granted), any(granted))


def tls_of(authority: str, proof: Proof) -> ssl.SSLContext:
    context = tls_context(authority)
    if proof.certificate is not None:
        context.load_cert_chain(proof.certificate)
    return context


def _aliased(alias: int) -> Any:
    if not alias:
        return None
    properties: Any = paho.Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.TopicAlias = alias
    return properties


def _values(codes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(code.value for code in codes)
