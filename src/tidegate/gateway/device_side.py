"""The asyncio shell of one device's connection: two sockets, and what happens between them.

A device must say CONNECT in time. It is then dialled to a broker; what it sends meanwhile waits. Once a broker has
answered, bytes flow both ways through the session, and for an MQTT 5 device on a 3.1.1 broker through a translation
before it. A side that cannot write any further stops the other from being read, so the gateway never holds more than
its buffers. When one side goes, the other gets what is still buffered for it and is closed; publishes that wait for
their turn still go to the broker at their pace.
"""

import asyncio
import time
from typing import TYPE_CHECKING, cast

from tidegate.gateway.connection.flow import BrokerFlow, DeviceFlow
from tidegate.gateway.connection.opening import ConnectSummary, Opened, Opening, Refusal, connack_refusing
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.dialling import Dialled, dial_any
from tidegate.gateway.layers import sockets
from tidegate.gateway.waiting import TOO_LONG, Waiting
from tidegate.model.observations import HeldClient
from tidegate.mqtt import violations
from tidegate.mqtt.client import DISCONNECT
from tidegate.mqtt.packets import Disconnect, encode
from tidegate.mqtt.violations import Violation

if TYPE_CHECKING:
    from tidegate.gateway.broker_side import BrokerSide
    from tidegate.gateway.gate import Gate

# How long a broker may take to let go of a client that connects anew.
GIVE_WAY_S = 1.0
# A device may be silent for so many times its keep-alive; a broker that watches it as well shall be the first to act.
SILENT_FACTOR, SILENT_GRACE_S = 1.5, 1.0
NEARLY_SILENT_FACTOR = 0.9
# What a device may send before a broker has answered; reading is paused, so this is a chunk or two.
EARLY_BYTES_MAX = 262_144
NO_CONNECT = "no CONNECT in time"
TAKEN_OVER, SHUTTING_DOWN, KEEP_ALIVE_EXCEEDED = 0x8E, 0x8B, 0x8D


class DeviceSide(asyncio.Protocol):
    """The connection of one device, from its first byte on."""

    __slots__ = (
        "_deadline", "_dialling", "_early", "_ended_for", "_flow", "_gate", "_gives_way", "_is_half_closed", "_left",
        "_opening", "_session", "_writable", "client_id", "connect", "dialled", "side", "translation", "transport",
        "waiting",
    )  # fmt: skip

    def __init__(self, gate: "Gate") -> None:
        self.side: BrokerSide | None = None  # once a broker has answered
        self.connect: ConnectSummary | None = None
        self.client_id = ""
        self.transport: asyncio.Transport | None = None
        self.translation: Translation | None = None
        self.dialled: Dialled | None = None
        self.waiting: Waiting | None = None
        self._gate = gate
        self._session: Session | None = None
        self._flow: DeviceFlow | None = None
        self._opening: Opening | None = Opening(gate.settings.connect_bytes_max, gate.settings.properties_max)
        self._early = bytearray()
        self._writable = True
        self._gives_way = False
        self._ended_for = ""
        self._is_half_closed = False
        self._left = False
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
            self._gate.settings.connect_timeout_s, self.end, NO_CONNECT
        )

    def data_received(self, data: bytes) -> None:
        flow, translation = self._flow, self.translation
        if flow is None or self._session is None:
            self._receive_early(data)
        elif translation is None:
            flow.data_received(data)
        else:
            data = translation.received(data)
            self._session.passing.expiries_s = translation.message_expiry_s
            flow.data_received(data)
            self._attend_translation(translation)

    def eof_received(self) -> bool:
        """The device sends no more. What it sent is still delivered, and answered where the broker does."""
        upstream = self.side.transport if self.side is not None else None
        if upstream is None or upstream.is_closing() or not upstream.can_write_eof() or self._holds:
            return False
        upstream.write_eof()
        self._is_half_closed = True
        self._deadline = asyncio.get_running_loop().call_later(sockets.LINGER_S, self.close)
        return True

    def connection_lost(self, _: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._session is not None:
            self._session.leave()
        if self._holds and not self._ended_for and not self._gives_way and self.waiting is not None:
            self.waiting.finish()
        else:
            self.release_broker()
        self._gate.leave(self)

    def pause_writing(self) -> None:
        self._writable = False
        if self.side is not None:
            sockets.pause(self.side.transport)

    def resume_writing(self) -> None:
        self._writable = True
        if self.side is not None and not (self.translation is not None and self.translation.is_full):
            sockets.resume(self.side.transport)

    # -- what the other side and the gate call

    def deliver(self, data: bytes) -> None:
        """The broker's packets, for the device."""
        translation = self.translation
        if translation is None:
            self.write(data)
            return
        self.write(translation.wrap(data) + translation.answer())
        self._attend_translation(translation)
        if translation.is_full and self.side is not None:
            sockets.pause(self.side.transport)

    def write(self, data: bytes) -> None:
        if data:
            sockets.write(self.transport, data)

    def pause_reading(self) -> None:
        sockets.pause(self.transport)

    def resume_reading(self) -> None:
        """Unless something else keeps the device from being read."""
        waiting, side = self.waiting, self.side
        is_blocked = side is not None and side.is_full
        if not self._gives_way and not is_blocked and not (waiting is not None and waiting.is_full):
            sockets.resume(self.transport)

    def end(self, reason: str, code: int = 0, answer: bytes = b"") -> None:
        """Close because of something that is counted. ``code`` is for a device that speaks MQTT 5."""
        if self.transport is None or self.transport.is_closing():
            return
        self._ended_for = reason
        self._gate.counters.refuse(reason)
        self.write(answer or self._farewell(code))
        self.close()

    def dismiss(self) -> None:
        """The gateway goes: the device shall come again, elsewhere, and its will is not published for that."""
        if self.side is not None and self._session is not None and self.connect is not None:
            self.side.write(DISCONNECT)
        self.end("draining", SHUTTING_DOWN)

    def broker_left(self) -> None:
        """A broker that speaks MQTT 5 has said why itself."""
        if self.translation is not None and not self._is_half_closed:
            # Brokers differ in how long they wait; one that ends so long a silence does it for that.
            is_silent = self._is_silent(time.monotonic(), NEARLY_SILENT_FACTOR)
            self.write(self._farewell(KEEP_ALIVE_EXCEEDED if is_silent else SHUTTING_DOWN))
        self.close()
        self.release_broker()

    def close(self) -> None:
        sockets.close(self.transport)

    def release_broker(self) -> None:
        """Nothing of this device waits here any more: the broker may know that it is gone."""
        if self.waiting is not None:
            self.waiting.abandon(TOO_LONG if self._ended_for == TOO_LONG else "held when it left")
        if self.side is not None:
            self.side.close()
        if self.dialled is not None and not self._left:
            self._left = True
            self.dialled.session.forget()
            if self.translation is not None and self.translation.dropped:
                self._gate.counters.drop("larger than the client takes", self.translation.dropped)
            self._gate.forget(self, self.dialled)

    @property
    def is_finishing(self) -> bool:
        """Whether the device is gone, and something it sent still waits."""
        return self._holds and not self._left

    def held(self, now_s: float) -> HeldClient | None:
        """Whom an operator sees, where anything waits."""
        return None if self.waiting is None else self.waiting.held(now_s)

    def says_the_same(self, connect: ConnectSummary) -> bool:
        """Whether somebody else has this one's credentials."""
        return self.connect is not None and self.connect.credentials == connect.credentials

    async def give_way(self) -> None:
        """The same client connects anew. The broker must have closed this connection before it sees the other."""
        side = self.side
        if side is None or side.transport is None:
            return
        self._gives_way = True
        if self.waiting is not None:
            self.waiting.abandon("held when it left")
        self.pause_reading()
        self.write(self._farewell(TAKEN_OVER))
        try:
            # Where reading is paused the broker's farewell would go unseen.
            if not side.transport.is_closing() and side.transport.is_reading() and side.transport.can_write_eof():
                if not self._is_half_closed:
                    # A client that is taken over has not died: no will is published, as the embedded brokers have it.
                    side.transport.write(DISCONNECT)
                side.transport.write_eof()
                await asyncio.wait((side.lost,), timeout=GIVE_WAY_S)
        finally:
            side.transport.abort()
        await asyncio.wait((side.lost,), timeout=GIVE_WAY_S)

    def look(self, now_s: float) -> None:
        """Once a second: is the device alive, does the broker know, has anything waited for too long."""
        waiting = self.waiting
        if waiting is None or self._session is None:
            return
        self._session.look()
        is_read = self.transport is not None and not self.transport.is_closing() and self.transport.is_reading()
        if is_read and self._is_silent(now_s, SILENT_FACTOR, SILENT_GRACE_S):
            self.end("keep-alive exceeded", KEEP_ALIVE_EXCEEDED)
        else:
            waiting.look(now_s)

    def _is_silent(self, now_s: float, factor: float, grace_s: float = 0.0) -> bool:
        """Whether the device has said nothing for so many times its keep-alive."""
        if self.connect is None or self._session is None or self._flow is None:
            return False
        keep_alive_s = self._gate.keep_alive_of(self.connect, self._session)
        return now_s - self._flow.heard_s > factor * keep_alive_s + grace_s

    # -- from CONNECT to a broker

    def _receive_early(self, data: bytes) -> None:
        if self._opening is None:
            self._early += data
            if len(self._early) > EARLY_BYTES_MAX:
                self.end("packet too large", violations.PACKET_TOO_LARGE)
            return
        match self._opening.receive(data):
            case Refusal(reason, answer):
                self.end(reason, answer=answer)
            case Opened() as opened:
                assert self._deadline is not None
                self._deadline.cancel()
                self._gate.opened(self)
                self._gate.counters.bytes_in += len(opened.packet)
                self.pause_reading()
                self._opening, self._early = None, bytearray(opened.rest)
                self.connect = opened.connect
                self._dialling = asyncio.get_running_loop().create_task(self._reach_broker(opened))
            case None:
                pass

    async def _reach_broker(self, opened: Opened) -> None:
        gate, version = self._gate, opened.connect.version
        unavailable = connack_refusing(version, violations.SERVER_UNAVAILABLE)
        try:
            while await gate.turn(self):
                began_s = time.monotonic()
                dialled = await dial_any(gate, self, opened, await gate.make_way(opened.connect))
                gate.answered(self, time.monotonic() - began_s, dialled is not None)
                if dialled is not None:
                    self._begin(dialled)
                    return
        except Violation as violation:
            gate.gives_up(self)
            self.end(violation.reason, answer=connack_refusing(version, violation.code))
        else:
            self.end("no broker available", answer=unavailable)
        finally:
            if self._flow is None:
                self.close()  # whatever went wrong, the device shall not wait for it

    def _begin(self, dialled: Dialled) -> None:
        """A broker answered: from now on bytes pass, those first that had to wait."""
        gate, session, side = self._gate, dialled.session, dialled.side
        assert self.connect is not None
        self.dialled, self.side, self._session, self.client_id = dialled, side, session, dialled.client_id
        if session.return_code:
            gate.counters.refuse("refused by the broker")
            self.close()
            return
        self.waiting = Waiting(self, session, side, gate.keep_alive_of(self.connect, session))
        gate.accepted(self, dialled)
        if side.transport is None or side.transport.is_closing() or self.transport is None:
            self.close()
            return
        self._flow = DeviceFlow(self, session, side.transport.write, time.monotonic)
        if self.translation is None:
            # A listener with layers calls this side; without any the event loop calls the flow itself.
            sockets.hand_over(self.transport, self, self._flow)
            sockets.hand_over(side.transport, side, BrokerFlow(side, session, self.transport.write))
        if not self._writable:
            sockets.pause(side.transport)  # what came with CONNACK has filled the device's buffer already
        early, self._early = bytes(self._early), bytearray()
        if early:
            self.data_received(early)
        self.resume_reading()

    # -- beside the bytes

    @property
    def _holds(self) -> bool:
        return self._session is not None and self._session.passing.hold.waiting > 0

    def attend(self, now_s: float) -> None:
        """There is more to the session than bytes: answers, a problem, publishes that wait."""
        session = self._session
        assert session is not None
        session.attention = False
        if session.answer:
            answer = session.take_answer()
            if self._writable:
                self.deliver(answer)
            else:
                self.end("answers are not read")
        if session.problem:
            self.end(session.problem, session.code)
        elif self._holds and self.waiting is not None:
            self.waiting.begin(now_s)

    def _attend_translation(self, translation: Translation) -> None:
        self.write(translation.answer())
        if self.side is not None and (upstream := translation.answer_upstream()):
            self.side.write(upstream)
        if translation.problem:
            self.end(translation.problem, translation.code)
        elif translation.closes_without_disconnect:
            self.close()
        elif self._writable and not translation.is_full and self.side is not None:
            sockets.resume(self.side.transport)

    def _farewell(self, code: int) -> bytes:
        """What a device that speaks MQTT 5 is told at the end."""
        if not code or self.connect is None or self.connect.version < 5 or self._session is None:
            return b""
        if self.translation is not None:
            return self.translation.farewell(code)
        return encode(Disconnect(code=code), 5) if not self._session.disconnected else b""
