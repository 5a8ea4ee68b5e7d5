"""The asyncio shell of one device's connection: two sockets, and what happens between them.

A device must say CONNECT in time. It is then dialled to a broker, and to the next one if that does not answer; what
the device sends meanwhile waits. Once a broker has answered, bytes flow both ways through the session. Who cannot
write any further stops the other side from being read, so the gateway never holds more than its buffers. When one
side goes, the other gets what is still buffered for it and is closed.
"""

import asyncio
from typing import TYPE_CHECKING, cast

from tidegate.gateway import sockets
from tidegate.gateway.broker_side import BrokerSide
from tidegate.gateway.mqtt.opening import Connect, Opened, Opening, Refusal
from tidegate.gateway.mqtt.packets import CONNACK_UNAVAILABLE
from tidegate.gateway.mqtt.session import Session
from tidegate.model.routes import Broker

if TYPE_CHECKING:
    from tidegate.gateway.gate import Gate

# How long a broker may take to let go of a client that connects anew.
GIVE_WAY_S = 1.0


class DeviceSide(asyncio.Protocol):
    """The connection of one device, from its first byte on."""

    def __init__(self, gate: "Gate") -> None:
        self.side: BrokerSide | None = None  # once a broker has answered
        self.connect: Connect | None = None
        self.transport: asyncio.Transport | None = None
        self._gate = gate
        self._session: Session | None = None
        self._opening = Opening(gate.settings.connect_bytes_max)
        self._held = b""
        self._writable = True
        self._gives_way = False
        self._deadline: asyncio.TimerHandle | None = None
        self._dialling: asyncio.Task[None] | None = None

    # -- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if not self._gate.admit(self):
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=sockets.WRITE_BUFFER_BYTES_MAX)
        self._deadline = asyncio.get_running_loop().call_later(
            self._gate.settings.connect_timeout_s, self.end, "no CONNECT in time"
        )

    def data_received(self, data: bytes) -> None:
        side, session = self.side, self._session
        if side is None or session is None:
            self._receive_early(data)
            return
        forward = session.from_device(data)
        if forward:
            side.write(forward)
        if session.answer:
            if self._writable:
                self.write(session.take_answer())
            else:
                self.end("answers are not read")
        if session.problem:
            self.end(session.problem)

    def eof_received(self) -> bool:
        """The device sends no more. What it sent is still delivered, and answered where the broker does."""
        upstream = self.side.transport if self.side is not None else None
        if upstream is None or upstream.is_closing() or not upstream.can_write_eof():
            return False
        upstream.write_eof()
        self._deadline = asyncio.get_running_loop().call_later(sockets.LINGER_S, self.close)
        return True

    def connection_lost(self, _: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
        if self.side is not None:
            self.side.close()
        if self._session is not None:
            self._session.leave()
        self._gate.leave(self)

    def pause_writing(self) -> None:
        self._writable = False
        if self.side is not None:
            sockets.pause(self.side.transport)

    def resume_writing(self) -> None:
        self._writable = True
        if self.side is not None:
            sockets.resume(self.side.transport)

    # -- what the other side and the gate call

    def write(self, data: bytes) -> None:
        sockets.write(self.transport, data)

    def pause_reading(self) -> None:
        sockets.pause(self.transport)

    def resume_reading(self) -> None:
        if not self._gives_way:
            sockets.resume(self.transport)

    def end(self, reason: str, answer: bytes = b"") -> None:
        """Close because of something that is counted."""
        if self.transport is None or self.transport.is_closing():
            return
        self._gate.counters.refuse(reason)
        if answer:
            self.write(answer)
        self.close()

    def close(self) -> None:
        sockets.close(self.transport)

    async def give_way(self) -> None:
        """The same client connects anew. The broker must have closed this connection before it sees the other."""
        side = self.side
        if side is None or side.transport is None:
            return
        self._gives_way = True
        self.pause_reading()
        try:
            # Where reading is paused the broker's farewell would go unseen.
            if not side.transport.is_closing() and side.transport.is_reading() and side.transport.can_write_eof():
                side.transport.write_eof()
                await asyncio.wait((side.lost,), timeout=GIVE_WAY_S)
        finally:
            side.transport.abort()
        await asyncio.wait((side.lost,), timeout=GIVE_WAY_S)

    # -- from CONNECT to a broker

    def _receive_early(self, data: bytes) -> None:
        if self._dialling is not None:
            self._held += data
            return
        match self._opening.receive(data):
            case Refusal(reason, answer):
                self.end(reason, answer)
            case Opened() as opened:
                assert self._deadline is not None
                self._deadline.cancel()
                self._gate.counters.bytes_in += len(opened.packet)
                self.pause_reading()
                self._held = opened.rest
                self.connect = opened.connect
                self._dialling = asyncio.get_running_loop().create_task(self._reach_broker(opened))
            case None:
                pass

    async def _reach_broker(self, opened: Opened) -> None:
        gate, tried = self._gate, set[str]()
        await gate.make_way(opened.connect)
        while (broker := gate.router.take(opened.connect.client_id, tried)) is not None:
            tried.add(broker.name)
            if await self._dial(broker, opened.packet):
                self._flow()
                return
        self.end("no broker available", CONNACK_UNAVAILABLE)

    async def _dial(self, broker: Broker, packet: bytes) -> bool:
        """Whether the broker answered, be it with a refusal. Until then nothing but CONNECT was sent to it."""
        gate, loop = self._gate, asyncio.get_running_loop()
        session = Session(gate.settings.packet_bytes_max, gate.advice, gate.counters, gate.classes)
        side = BrokerSide(self, broker, session)
        side.lost.add_done_callback(lambda _: gate.router.give_back(broker))
        answered = False
        try:
            async with asyncio.timeout(gate.settings.broker_timeout_s):
                await loop.create_connection(lambda: side, broker.host, broker.port)
                side.write(packet)
                await asyncio.wait((side.answered,))
                answered = side.answered.result()
        except (OSError, TimeoutError):
            pass
        finally:
            if answered:
                self.side, self._session = side, session
            elif side.transport is not None:
                side.transport.abort()
            elif not side.lost.done():
                side.lost.set_result(None)
        return answered

    def _flow(self) -> None:
        """A broker answered: from now on bytes pass, those first that had to wait."""
        assert self.side is not None
        assert self._session is not None
        assert self.connect is not None
        if self._session.return_code != 0:
            self._gate.counters.refuse("refused by the broker")
        elif not self.side.lost.done():
            self._gate.accepted(self, self.connect.client_id, self.side.broker)
        if self.side.lost.done():
            self.close()
            return
        self.resume_reading()
        held, self._held = self._held, b""
        if held:
            self.data_received(held)
        if not self._writable:
            sockets.pause(self.side.transport)
