"""Readings that come by HTTP go to a broker like any other: one MQTT connection, QoS 1, acknowledged one by one.

Nobody waits for ever. A reading that is not acknowledged in time fails, and so does everything in flight when the
connection is lost: the sender tries again, and its reading's identity keeps that from counting twice.

A broker that is told who its clients are hears of the gateway itself: many devices share this connection.
"""

import asyncio
from typing import cast

from tidegate.gateway.connection.noting import Noted
from tidegate.gateway.dialling_from import Sources, connect
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.routing import Router
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.tally import ClassTally
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker
from tidegate.mqtt import client as mqtt
from tidegate.mqtt.fields import PACKET_ID_MAX

RECONNECT_S = 0.5


def packet_bytes(topic: bytes, payload: bytes) -> int:
    """What a reading has as a publish."""
    return len(mqtt.encode_publish(topic, payload, packet_id=1))


def _proxy_header(transport: asyncio.Transport) -> bytes:
    here, there = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    return encode_header(Peer(address=here[:2]), there[:2])


class _Connection(asyncio.Protocol):
    """One connection to a broker, and who waits for which acknowledgement."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.answered: asyncio.Future[bool] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self._decoder = mqtt.Decoder()
        self._packet_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for event in self._decoder.receive(data):
            if isinstance(event, mqtt.PublishAcknowledged):
                waiter = self.waiting.pop(event.packet_id, None)
                if waiter is not None and not waiter.done():
                    waiter.set_result(None)
            elif isinstance(event, mqtt.ConnectionAnswered) and not self.answered.done():
                self.answered.set_result(event.refusal() is None)
            elif isinstance(event, mqtt.ProtocolViolated) and self.transport is not None:
                self.transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.answered.done():
            self.answered.set_result(False)
        self.lost.set_result(None)
        for waiter in self.waiting.values():
            if not waiter.done():
                waiter.set_exception(BrokerUnavailableError("The broker hung up before it acknowledged the reading."))

    def send(self, topic: bytes, payload: bytes) -> asyncio.Future[None]:
        assert self.transport is not None
        self._packet_id = self._packet_id % PACKET_ID_MAX + 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[self._packet_id] = waiter
        self.transport.write(mqtt.encode_publish(topic, payload, packet_id=self._packet_id))
        return waiter


class Ingest:
    """Publishes for those who do not speak MQTT."""

    def __init__(
        self,
        installation: Installation,
        router: Router,
        counters: Counters,
        *,
        client_id: str,
        timeout_s: float,
        in_flight_max: int,
        sources: Sources,
        noted: Noted | None = None,
    ) -> None:
        self._noted = noted
        self._sources = sources
        self._router = router
        self._counters = counters
        self.timeout_s = timeout_s
        self._in_flight_max = in_flight_max
        self._connect = mqtt.encode_connect(
            client_id, user=installation.mqtt_user, password=installation.mqtt_password, keep_alive_s=0
        )
        self._connection: _Connection | None = None
        self._connected = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep_connected(), name="HTTP ingest")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def publish(self, topic: bytes, payload: bytes, of_class: ClassTally) -> None:
        """Return when a broker has acknowledged the message; raise BrokerUnavailableError where none did in time."""
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self.timeout_s):
                await self._connected.wait()
                connection = self._connection
                assert connection is not None
                if connection.lost.done():
                    raise BrokerUnavailableError("The connection to the broker was just lost: try again.")
                if len(connection.waiting) >= self._in_flight_max:
                    raise BrokerUnavailableError("Too many readings wait for the broker: try again later.")
                self._counters.publishes += 1
                of_class.publishes += 1
                await connection.send(topic, payload)
                self._counters.acknowledged += 1
                if self._noted is not None:
                    self._noted.acknowledge(topic, payload)
        except TimeoutError:
            # It answers nothing: the next reading shall meet another connection, perhaps to another broker.
            if connection is not None and connection.transport is not None:
                connection.transport.abort()
            raise BrokerUnavailableError(f"No broker acknowledged the reading within {self.timeout_s:g} s.") from None

    async def _keep_connected(self) -> None:
        tried: set[str] = set()
        while True:
            broker = self._router.take(None, tried)
            if broker is None:
                tried.clear()
                await asyncio.sleep(RECONNECT_S)
                continue
            tried.add(broker.name)
            connection = _Connection()
            try:
                await self._serve(connection, broker)
                tried.clear()
            except (OSError, TimeoutError):
                continue
            finally:
                self._connected.clear()
                self._router.give_back(broker)
                if connection.transport is not None:
                    connection.transport.abort()
            await asyncio.sleep(RECONNECT_S)

    async def _serve(self, connection: _Connection, broker: Broker) -> None:
        """Connect, and stay until the connection is lost."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.timeout_s):
            await connect(loop, lambda: connection, broker, self._sources)
            assert connection.transport is not None
            connection.transport.write(_proxy_header(connection.transport) if broker.proxy_protocol else b"")
            connection.transport.write(self._connect)
            await asyncio.wait((connection.answered,))
        if not connection.answered.result():
            raise ConnectionRefusedError
        self._connection = connection
        self._connected.set()
        await asyncio.wait((connection.lost,))
