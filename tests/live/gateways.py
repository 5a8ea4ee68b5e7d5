"""A gateway in the test's own process, and clients of it: what tests of real connections share."""

import asyncio
import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import uvloop
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from tidegate.bus.knowledge import Knowledge

from tidegate.bus.wire import Wire
from tidegate.gateway.device_side import DeviceSide
from tidegate.gateway.server import Gateway
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.advice import ADVICE_KEY, Advice
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.mqtt.client import encode_connect


def until(condition: Callable[[], object], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


class Running:
    """A gateway in a thread of its own, on the loop that it has in production."""

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        classes: tuple[DeviceClass, ...] = DEFAULT_CLASSES,
    ) -> None:
        self.here = installation
        self._classes = classes
        self.said: list[str] = []
        self.faults: list[dict[str, object]] = []
        self._settings = settings
        self._outcome: queue.Queue[Exception | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Running":
        self._thread.start()
        if (failure := self._outcome.get(timeout=20)) is not None:
            raise failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self.faults == [], "nothing went wrong behind the scenes either"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.gateway = Gateway(self.here, self._settings, self.said.append, self._classes)
        try:
            await self.gateway.start()
            self._outcome.put(None)
            await self._stopping.wait()
        except Exception as error:
            self._outcome.put(error)
        finally:
            await self.gateway.stop()

    @property
    def address(self) -> tuple[str, int]:
        return self.gateway.mqtt_address

    @property
    def state(self) -> GatewayState:
        return self.gateway.gate.state("")

    def device(self, name: str) -> DeviceSide | None:
        gate = self.gateway.gate
        return gate._by_client.get(gate.router.digest(name))

    def refused(self, reason: str) -> int:
        return self.state.refused.get(reason, 0)

    def connect_packet(self, name: str, **options: object) -> bytes:
        return encode_connect(name, user=self.here.mqtt_user, password=self.here.mqtt_password, **options)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def raw(self, packet: bytes = b"", *, buffer_bytes: int = 0) -> Iterator[socket.socket]:
        with socket.socket() as connection:
            if buffer_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            connection.settimeout(15)
            connection.connect(self.address)
            connection.sendall(packet)
            yield connection

    @contextlib.contextmanager
    def client(
        self, name: str, *, clean: bool = True, will: str = "", version: int = 4, **connecting: Any
    ) -> Iterator["Client"]:
        """``connecting`` is for paho's own connect."""
        client = Client(name, clean=clean, version=version)
        if will:
            client.will_set(will, b"gone", qos=1)
        client.username_pw_set(self.here.mqtt_user, self.here.mqtt_password)
        client.connect(*self.address, **connecting)
        client.loop_start()
        try:
            until(client.is_connected)
            yield client
        finally:
            client.disconnect()
            client.loop_stop()

    def put(self, key: str, value: object) -> None:
        with Wire(self.here.control_urls) as wire:
            Knowledge(wire).put(key, msgspec.json.encode(value))

    def advise(self, interval_s: float, lifetime_s: float = 60) -> None:
        self.put(ADVICE_KEY, Advice(interval_s=interval_s, lifetime_s=lifetime_s))

        def known() -> bool:
            advice = self.gateway.gate.advice.current()
            return advice is not None and advice.interval_s == interval_s

        until(known)


class Client(paho.Client):
    """A paho client that keeps what it heard."""

    def __init__(self, name: str, *, clean: bool, version: int = 4) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            name,
            clean_session=None if version == 5 else clean,
            protocol=MQTTProtocolVersion(version),
        )
        self.heard: list[tuple[str, bytes]] = []
        self.granted: list[list[int]] = []
        self.presents: list[bool] = []  # whether a session was there, at each connect
        self.on_connect = lambda _c, _u, flags, _r, _p: self.presents.append(flags.session_present)
        self.on_message = lambda _c, _u, message: self.heard.append((message.topic, message.payload))
        self.on_subscribe = lambda _c, _u, _m, codes, _p: self.granted.append([code.value for code in codes])

    def subscribed(self, *filters: tuple[str, int]) -> list[int]:
        before = len(self.granted)
        self.subscribe(list(filters))
        until(lambda: len(self.granted) > before)
        return self.granted[-1]

    def published(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False) -> None:
        self.publish(topic, payload, qos, retain).wait_for_publish(15)


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        assert part, f"closed after {data!r}"
        data += part
    return data


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
