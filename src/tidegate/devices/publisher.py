"""A publisher: one MQTT connection that carries the readings of one device or of many, and gives none up.

Each reading is published at QoS 1 and stays in flight until its PUBACK arrives. At most ``window`` are in flight: it
takes no more until one is acknowledged. When the connection is lost, the next broker is tried (``dialling``), and
everything in flight is sent again in the same order, with the same payload, marked as duplicate. An acknowledgement is
written to the acknowledgement file before it is counted. A publisher that is given ``on_advice`` asks for advice on
every connection and hands over what it hears.

Frames are collected during one turn of the event loop and written at once: a system call costs more than a frame.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.connection import Connection
from tidegate.devices.dialling import Dialler
from tidegate.devices.in_flight import SUBSCRIPTION_ID, InFlight, Message
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.devices.topics import topic_of
from tidegate.model.advice import ADVICE_TOPIC, Advice
from tidegate.model.errors import BrokerUnavailableError, TidegateError
from tidegate.model.readings import Reading
from tidegate.mqtt import client as mqtt

CLOSE_TIMEOUT_S = 1.0
_SUBSCRIBE = mqtt.encode_subscribe(ADVICE_TOPIC, packet_id=SUBSCRIPTION_ID)
_ADVICE_TOPIC = ADVICE_TOPIC.encode()
_REFUSED = 0x80
_ENCODER = msgspec.json.Encoder()
_ADVICE_DECODER = msgspec.json.Decoder(Advice)


class PublisherCounters(msgspec.Struct):
    """What a publisher did. ``sent`` counts each message once, however often it had to be resent.

    ``samples_acked`` is how many samples the acknowledged messages stand for.
    """

    sent: int = 0
    acked: int = 0
    samples_acked: int = 0
    resent: int = 0
    reconnects: int = 0


class Publisher:
    """Use as an asynchronous context manager, inside which ``offer`` is called.

    Leaving the context closes the connection without waiting: where everything has to arrive, await ``changed`` until
    nothing is ``in_flight``.
    """

    def __init__(
        self,
        *,
        client_id: str,
        addresses: Sequence[tuple[str, int]],
        device_class: str | None = None,
        user: str | None = None,
        password: str | None = None,
        acknowledgements: AckFile | None = None,
        settings: PublisherSettings | None = None,
        jitter: random.Random | None = None,
        on_advice: Callable[[Advice], None] | None = None,
        on_acknowledged: Callable[[], None] | None = None,
    ) -> None:
        if not addresses:
            raise BrokerUnavailableError(f"Publisher {client_id} knows no broker: give it at least one address.")
        self.counters = PublisherCounters()
        self.last_failure = ""
        self._settings = settings or PublisherSettings()
        self._client_id = client_id
        self._device_class = device_class
        connect = mqtt.encode_connect(client_id, user=user, password=password, keep_alive_s=self._settings.keep_alive_s)
        self._acknowledgements = acknowledgements
        self._on_advice = on_advice
        self._on_acknowledged = on_acknowledged
        # Two devices that lost the same broker must not come back in step, so their jitter differs by default.
        jitter = jitter or random.Random(client_id)  # noqa: S311 - it spreads load, it guards nothing
        self._dialler = Dialler(tuple(addresses), connect, self._settings, jitter)
        self._in_flight = InFlight(self._settings.window)
        self._topics: dict[str, bytes] = {}
        self._frames: list[bytes] = []
        self._flush_due = False
        self._settle_due = 0
        self._settle_samples = 0
        self._failure: TidegateError | None = None
        self._connection: Connection | None = None
        self._is_advised = False
        self._waiters: list[asyncio.Future[None]] = []
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._keeper = asyncio.create_task(self._keep_connected(), name=f"publisher {self._client_id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._keeper is not None
        connection = self._connection
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        if connection is not None:
            await asyncio.wait((connection.lost,), timeout=CLOSE_TIMEOUT_S)
        if self._settle_due:
            self._settle()

    @property
    def in_flight(self) -> int:
        """How many readings wait for their acknowledgement."""
        return self.counters.sent - self.counters.acked

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def is_advised(self) -> bool:
        """Whether whoever it is connected to has agreed to send it advice."""
        return self._is_advised

    @property
    def has_room(self) -> bool:
        """Whether ``offer`` would take a reading now."""
        return self._in_flight.has_room and self._failure is None

    def offer(self, device: str, reading: Reading) -> bool:
        """Send one reading if there is room in the window; False, and nothing happened, where there is none."""
        if not self.has_room:
            return False
        if reading.boot is None or reading.seq is None:
            raise ValueError("a reading without boot and seq has no identity that could be acknowledged")
        topic = self._topics.get(device)
        if topic is None:
            topic = self._topics[device] = topic_of(device, self._device_class)
        payload = _ENCODER.encode(reading)
        written_s = None if self._connection is None else self._loop.time()
        message = Message(device, reading.boot, reading.seq, reading.count, topic, payload, written_s)
        packet_id = self._in_flight.add(message)
        self.counters.sent += 1
        # Without a connection the reading waits in flight: it goes out first of all when there is one again.
        if self._connection is not None:
            self._frames.append(mqtt.encode_publish(topic, payload, packet_id=packet_id))
            if not self._flush_due:
                self._flush_due = True
                self._loop.call_soon(self._flush)
        return True

    def acknowledge(self, connection: Connection, packet_id: int) -> None:
        """A PUBACK arrived. What is not in flight, or comes from a connection given up, changes nothing."""
        if connection is not self._connection:
            return
        done = self._in_flight.pop(packet_id)
        if done is None:
            return
        if self._acknowledgements is not None:
            self._acknowledgements.append(done.device, done.boot, done.seq)
        if not self._settle_due:
            self._loop.call_soon(self._settle)
        self._settle_due += 1
        self._settle_samples += done.count

    def hear(self, connection: Connection, event: mqtt.Subscribed | mqtt.MessageReceived) -> None:
        """The answer to the subscription, or what came through it. Advice that cannot be read is none."""
        if isinstance(event, mqtt.Subscribed):
            accepted = event.packet_id == SUBSCRIPTION_ID and event.codes[0] != _REFUSED
            self._is_advised = accepted and connection is self._connection
        elif self._on_advice is not None and event.topic == _ADVICE_TOPIC:
            try:
                advice = _ADVICE_DECODER.decode(event.payload)
            except msgspec.DecodeError:
                return
            self._on_advice(advice)

    def _settle(self) -> None:
        """Acknowledgements reach the file first and are counted afterwards, all of one turn together."""
        settled, self._settle_due = self._settle_due, 0
        samples, self._settle_samples = self._settle_samples, 0
        try:
            if self._acknowledgements is not None:
                self._acknowledgements.flush()
            self.counters.acked += settled
            self.counters.samples_acked += samples
        except TidegateError as error:
            self._failure = error
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._on_acknowledged is not None:
            self._on_acknowledged()

    async def changed(self) -> None:
        """Wait for the next acknowledgements; raises what makes further ones impossible."""
        if self._failure is not None:
            raise self._failure
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _flush(self) -> None:
        self._flush_due = False
        frames, self._frames = self._frames, []
        connection = self._connection
        if connection is not None and connection.transport is not None and frames:
            connection.transport.write(b"".join(frames))

    async def _keep_connected(self) -> None:
        """Connect, stay, and begin again with the next broker, until cancelled."""
        attempts, opened_s = 0, -1.0
        while True:
            host, port = self._dialler.next_address()
            connection = Connection(self)
            try:
                await self._dialler.open(connection, host, port)
                self.counters.reconnects += opened_s >= 0
                opened_s = self._loop.time()
                reason = await self._serve(connection)
                # A broker that accepts and hangs up at once must not be asked in a tight loop.
                attempts = 0 if self._loop.time() - opened_s > self._settings.backoff_s_max else attempts
            except (OSError, TimeoutError, BrokerUnavailableError) as error:
                reason = str(error) or "it did not answer in time"
            finally:
                self._leave(connection)
            self.last_failure = f"Broker {host}:{port} was lost: {reason}"
            await asyncio.sleep(self._dialler.pause_s(attempts))
            attempts += 1

    async def _serve(self, connection: Connection) -> str:
        """Ask for advice, send everything in flight again, in order; then watch; returns why it ended."""
        now_s = self._loop.time()
        self._frames.clear()
        if self._on_advice is not None:
            self._frames.append(_SUBSCRIBE)
        for frame, duplicate in self._in_flight.frames_again(now_s):
            self._frames.append(frame)
            self.counters.resent += duplicate
        self._connection = connection
        self._flush()
        while not connection.lost.done():
            await asyncio.wait((connection.lost,), timeout=self._settings.keep_alive_s / 4)
            self._watch(connection)
        return connection.lost.result()

    def _watch(self, connection: Connection) -> None:
        """Ping a quiet broker; give up one that does not answer pings, or answers pings but not publishes."""
        if connection.lost.done() or connection.transport is None:
            return
        now_s, settings = self._loop.time(), self._settings
        if now_s - connection.received_s > settings.keep_alive_s:
            connection.fail(f"it was silent for {settings.keep_alive_s} s")
        elif self._in_flight.waiting_s(now_s) > settings.acknowledge_timeout_s:
            connection.fail(f"it did not acknowledge for {settings.acknowledge_timeout_s:g} s")
        elif now_s - connection.received_s > settings.keep_alive_s / 4 - 0.1:
            connection.transport.write(mqtt.PINGREQ)

    def _leave(self, connection: Connection) -> None:
        if self._connection is connection:
            self._flush()
        self._connection = None
        self._is_advised = False
        self._frames.clear()
        if connection.transport is not None:
            if not connection.lost.done() and connection.answered.done():
                connection.transport.write(mqtt.DISCONNECT)
                connection.transport.close()
            else:
                connection.transport.abort()
