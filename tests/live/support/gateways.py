"""A gateway in the test's own process: what tests of real connections look into and reach."""

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import uvloop

from support import bus
from support.clients import Client, connected
from support.waiting import until
from tidegate.bus.documents import ADVICE, Document
from tidegate.gateway.device_side import DeviceSide
from tidegate.gateway.identity.settings import BrokerSettings, IdentitySettings
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.listening import Bound, bind
from tidegate.gateway.server import Gateway
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.advice import Advice
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.mqtt.client import encode_connect

# Short times and small packets, so that tests of what is too late or too large are quick.
STRICT = GatewaySettings(
    connect_timeout_s=1.0,
    admission_s_max=1.0,
    connect_bytes_max=4_096,
    packet_bytes_max=200_000,
    enforce_advice=False,
)
# The broker decides about everything: tests of what passes use any topic and any name.
PASSED_ON = IdentitySettings(methods=("broker",), broker=BrokerSettings(decides_topics=True))
# The same, but for who brings a derived password: readings by HTTP are never the broker's to judge.
DERIVED_TOO = IdentitySettings(methods=("derived", "broker"), broker=BrokerSettings(decides_topics=True))


class Running:
    """A gateway in a thread of its own, on the loop that it has in production.

    Listeners beyond its own two have names here, and ``ports`` says where each of them is.
    """

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        classes: tuple[DeviceClass, ...] = DEFAULT_CLASSES,
        identity: IdentitySettings = PASSED_ON,
        *,
        listeners: Mapping[str, Listener] | None = None,
    ) -> None:
        self.here = installation
        self.ports: dict[str, int] = {}
        self.said: list[str] = []
        self._classes = classes
        self._identity = identity
        self._faults: list[dict[str, object]] = []
        self._listeners = listeners or {}
        self._settings = msgspec.structs.replace(settings, listeners=tuple(self._listeners.values()))
        self._outcome: queue.Queue[Exception | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Running":
        self._bound = self._bind()
        self._thread.start()
        if (failure := self._outcome.get(timeout=20)) is not None:
            raise failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), f"the gateway does not stop: {asyncio.all_tasks(self._loop)}"
        self.assert_no_faults()

    def assert_no_faults(self) -> None:
        faults, self._faults = self._faults, []
        assert faults == [], "nothing went wrong behind the scenes either"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda _, context: self._faults.append(context))
        self.gateway = Gateway(
            self.here, self._settings, self.said.append, self._classes, self._identity, bound=self._bound
        )
        try:
            await self.gateway.start()
            self._outcome.put(None)
            await self._stopping.wait()
        except Exception as error:
            self._outcome.put(error)
        finally:
            await self.gateway.stop()

    def _bind(self) -> Sequence[Bound] | None:
        """Without more listeners the gateway binds its own, as in production."""
        if not self._listeners:
            return None
        bound = bind(self._settings)
        self.ports = {name: one.address[1] for name, one in zip(self._listeners, bound[2:], strict=True)}
        return bound

    @property
    def address(self) -> tuple[str, int]:
        return self.gateway.mqtt_address

    @property
    def http(self) -> tuple[str, int]:
        return self.gateway.http_address

    def address_of(self, listener: str | None) -> tuple[str, int]:
        return ("127.0.0.1", self.ports[listener]) if listener is not None else self.address

    @property
    def state(self) -> GatewayState:
        return self.gateway.gate.state("")

    def device(self, name: str) -> DeviceSide | None:
        gate = self.gateway.gate
        # Where the broker is one method among others, its clients' identifiers begin with their user name.
        known = (gate._by_client.get(gate.router.digest(each)) for each in (name, f"{self.here.mqtt_user}/{name}"))
        return next((device for device in known if device is not None), None)

    def refused(self, reason: str) -> int:
        return self.state.refused.get(reason, 0)

    def connect_packet(self, name: str, **options: object) -> bytes:
        return encode_connect(name, user=self.here.mqtt_user, password=self.here.mqtt_password, **options)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def raw(
        self, packet: bytes = b"", *, listener: str | None = None, buffer_bytes: int = 0
    ) -> Iterator[socket.socket]:
        with socket.socket() as connection:
            if buffer_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            connection.settimeout(15)
            connection.connect(self.address_of(listener))
            connection.sendall(packet)
            yield connection

    @contextlib.contextmanager
    def client(self, name: str, *, listener: str | None = None, **options: Any) -> Iterator[Client]:
        """The options are those of ``connected``."""
        with connected(self.here, name, address=self.address_of(listener), **options) as client:
            yield client

    def put(self, document: Document[Any], value: object) -> None:
        bus.put(self.here, document, value)

    def wait_for_keys(self) -> None:
        """Until derived passwords are taken: they have to be on the bus already."""
        gate = self.gateway.gate
        until(lambda: gate.clients.identities._derived.keys is not None and gate.clients.knows_revoked())

    def advise(self, interval_s: float, lifetime_s: float = 60) -> None:
        self.put(ADVICE, Advice(interval_s=interval_s, lifetime_s=lifetime_s))

        def known() -> bool:
            advice = self.gateway.gate.advice.current()
            return advice is not None and advice.interval_s == interval_s

        until(known)
