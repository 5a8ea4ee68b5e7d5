"""The asyncio shell of one device's connection: two sockets and a timer, and doing what the machine between them wants.

What happens is told to the machine (``connection/machine.py``), and what that asks for is done here, one instruction
after the other. Nothing is decided here.
"""

import asyncio
import errno
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

from tidegate.gateway.broker_side import BrokerSide
from tidegate.gateway.connection.flow import BrokerFlow, DeviceFlow
from tidegate.gateway.connection.instructions import (
    AskOthers,
    Choose,
    DeleteSession,
    Do,
    Instruction,
    Judge,
    Learn5,
    MakeWay,
    ToBroker,
    ToDevice,
    TurnEnds,
    WakeAt,
)
from tidegate.gateway.connection.machine import Connection
from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.dialling_from import connect
from tidegate.gateway.gate import Gate
from tidegate.gateway.identity.verdicts import SERVICE_AWAY, Accepted, Presented, Refused
from tidegate.gateway.layers import sockets
from tidegate.gateway.layers.layer import peer_of, peer_of_socket
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.shared.directory import Known
from tidegate.model.routes import Broker
from tidegate.mqtt.connect import Connect

# A chunk of this size whose packets are looked at one by one takes a while.
DEAR_BYTES = 4_096
# The gateway's own: they tell nothing of the broker, and the next try would meet them too.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


class DeviceSide(asyncio.Protocol):
    """The connection of one device, from its first byte on."""

    __slots__ = (
        "_counted", "_flow", "_gate", "_is_performing", "_known", "_task", "_timer", "_todo", "address", "machine",
        "side", "transport",
    )  # fmt: skip

    def __init__(self, gate: Gate) -> None:
        self.transport: asyncio.Transport | None = None
        self.address = ""
        self.machine = Connection(gate.terms, time.monotonic())
        self._gate = gate
        self.side: BrokerSide | None = None
        self._flow: DeviceFlow | None = None
        self._known: Known | None = None
        self._counted: Broker | None = None  # where the router counts this connection
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None  # what the machine waits for
        self._todo: deque[Instruction] = deque()
        self._is_performing = False

    # -- what the event loop and the layers call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.address = peer_of_socket(transport).address[0]
        if not self._gate.admit(self):
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=sockets.WRITE_BUFFER_BYTES_MAX)

    def data_received(self, data: bytes) -> None:
        if self._flow is not None:
            self._flow.data_received(data)
        else:
            self.perform(self.machine.device_data(data, time.monotonic()))
            if len(data) > DEAR_BYTES:
                self.take_turns()

    def take_turns(self) -> None:
        """What was just read was dear: others come before this device is read again."""
        if self.transport is not None and not self.transport.is_closing() and self.transport.is_reading():
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if self.machine.reads_device:
            sockets.resume(self.transport)

    def eof_received(self) -> bool:
        side = self.side.transport if self.side is not None else None
        if side is not None and not side.is_closing() and side.can_write_eof():
            self.perform(self.machine.device_ended(time.monotonic()))
        return self.machine.is_half_closed

    def connection_lost(self, _: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()
        self.perform(self.machine.device_lost(time.monotonic()))
        self._gate.leave(self)
        self._flow = None
        if self.side is None:
            self._count_no_more()

    def pause_writing(self) -> None:
        self.perform(self.machine.device_full(True))

    def resume_writing(self) -> None:
        self.perform(self.machine.device_full(False))

    def attend(self, now_s: float) -> None:
        """The session wants more than bytes passed on."""
        self.perform(self.machine.attend(now_s))

    # -- what the broker's side calls

    def broker_data(self, side: BrokerSide, data: bytes) -> None:
        if side is self.side:
            self.perform(self.machine.broker_data(data, time.monotonic()))

    def broker_lost(self, side: BrokerSide) -> None:
        if side is self.side:
            self.side = None
            self.perform(self.machine.broker_lost(time.monotonic()))
            if self.side is None and self._task is None:
                self._count_no_more()

    def broker_full(self, side: BrokerSide, is_full: bool) -> None:
        if side is self.side:
            self.perform(self.machine.broker_full(is_full))

    # -- what the gate and the layers call

    def end(self, reason: str) -> None:
        self.perform(self.machine.end(reason))

    def close(self) -> None:
        sockets.close(self.transport)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def release_broker(self) -> None:
        """The gateway ends: so does what still waits here."""
        self.perform(self.machine.device_lost(time.monotonic()))

    async def give_way(self, within_s: float) -> None:
        """The same client connects anew. The broker must have closed this connection before it sees the other."""
        side = self.side
        upstream = side.transport if side is not None else None
        if side is None or upstream is None:
            return
        # Where reading is paused the broker's farewell would go unseen.
        hears = not upstream.is_closing() and upstream.is_reading() and upstream.can_write_eof()
        self.perform(self.machine.give_way(time.monotonic(), hears_broker=hears))
        try:
            if hears:
                await side.gone(within_s)
        finally:
            upstream.abort()
        await side.gone(within_s)

    # -- what the machine wants

    def perform(self, todo: list[Instruction]) -> None:
        """One after the other, in their order: what an instruction leads to comes behind all others."""
        self._todo.extend(todo)
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while self._todo:
                self._do(self._todo.popleft())
        finally:
            self._is_performing = False

    def _do(self, one: Instruction) -> None:
        machine = self.machine
        match one:
            case ToDevice(data):
                sockets.write(self.transport, data)
            case ToBroker(data):
                if self.side is not None:
                    sockets.write(self.side.transport, data)
            case WakeAt(at_s):
                self._wake_at(at_s)
            case Do():
                _DOING[one](self)
            case Judge(said):
                self._judge(said)
            case MakeWay(connect):
                self._make_way(connect)
            case Choose(tried):
                self._count_no_more()
                self._counted = broker = self._gate.router.take(self._known, tried)
                speaks_5 = None if broker is None else self._gate.speaks_5(broker)
                self.perform(machine.chosen(broker, speaks_5, time.monotonic()))
            case DeleteSession(broker, packet):
                self._await(self._delete_session(broker, packet))
            case AskOthers(brokers, since_s):
                self._await(self._ask_others(brokers, since_s))
            case TurnEnds(took_s, ok):
                self._gate.answered(self, took_s, ok)
            case Learn5(broker, speaks):
                self._gate.learn_5(broker, speaks=speaks)

    def _pause_broker(self) -> None:
        if self.side is not None:
            sockets.pause(self.side.transport)

    def _resume_broker(self) -> None:
        if self.side is not None:
            sockets.resume(self.side.transport)

    def _close_broker(self) -> None:
        if self.side is not None:
            sockets.close(self.side.transport)

    def _abort_broker(self) -> None:
        """Nothing more is heard of it."""
        side, self.side = self.side, None
        if side is not None and side.transport is not None:
            side.transport.abort()
        elif self._task is not None:
            self._task.cancel()

    def _end_writing(self) -> None:
        upstream = self.side.transport if self.side is not None else None
        if upstream is not None and not upstream.is_closing():
            upstream.write_eof()

    def _wake_at(self, at_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_s is not None:
            later_s = max(0.0, at_s - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(later_s, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self.perform(self.machine.woken(time.monotonic()))

    def _count_no_more(self) -> None:
        counted, self._counted = self._counted, None
        if counted is not None:
            self._gate.router.give_back(counted)

    # -- what takes time

    def _await(self, what: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(what)

    def _judge(self, said: Connect) -> None:
        assert self.transport is not None
        presented = self._gate.presented(said, peer_of(self.transport))
        found = self._gate.clients.judge(presented)
        if found is None:
            self._await(self._judge_slowly(presented))
        else:
            self._judged(presented, found)

    async def _judge_slowly(self, presented: Presented) -> None:
        found: Accepted | Refused = SERVICE_AWAY  # whatever goes wrong, the client shall not wait for it
        try:
            found = await self._gate.clients.judge_slowly(presented)
        finally:
            self._task = None
            if self.transport is not None and not self.transport.is_closing():
                self._judged(presented, found)

    def _judged(self, presented: Presented, found: Accepted | Refused) -> None:
        self._gate.judged(self, presented, found)
        self.perform(self.machine.judged(found))

    def _await_turn(self) -> None:
        connect = self.machine.connect
        assert connect is not None
        if self._gate.disliked.has(connect.whose, time.monotonic()):
            self.perform(self.machine.disliked())
        else:
            self._gate.await_turn(self, self._turned)

    def _turned(self, granted: bool) -> None:
        self.perform(self.machine.turned(granted, time.monotonic()))

    def _make_way(self, connect: ConnectSummary) -> None:
        known = self._gate.router.known(self._gate.digest_of(connect))
        if self._gate.is_elsewhere(known):
            self._await(self._make_way_slowly(connect))
        else:
            self._way_made(known)

    async def _make_way_slowly(self, connect: ConnectSummary) -> None:
        known = await self._gate.make_way(connect)
        self._task = None
        self._way_made(known)

    def _way_made(self, known: Known | None) -> None:
        self._known = known
        self.perform(self.machine.way_made(self._gate.credits_left(self.machine, known, time.monotonic())))

    def _dial(self) -> None:
        self._await(self._connect())

    async def _connect(self) -> None:
        broker = self.machine.broker
        assert broker is not None
        side = BrokerSide(self)
        shortage = False
        try:
            await connect(asyncio.get_running_loop(), lambda: side, broker, self._gate.sources)
        except OSError as error:
            shortage = error.errno in _SHORTAGES
        self._task = None
        if side.transport is None:
            self.perform(self.machine.not_reached(own_shortage=shortage))
            return
        self.side = side
        if broker.proxy_protocol and self.transport is not None:
            peer = peer_of(self.transport)
            side.transport.write(encode_header(peer, self.transport.get_extra_info("sockname")[:2]))
        self.perform(self.machine.reached())

    async def _delete_session(self, broker: Broker, packet: bytes) -> None:
        code = await self._gate.ask(broker, packet)
        self._task = None
        self.perform(self.machine.asked(code, time.monotonic()))

    async def _ask_others(self, brokers: tuple[Broker, ...], since_s: float) -> None:
        is_well = False
        for broker in brokers:
            is_well = is_well or await self._gate.evidence.is_well(broker, since_s)
        self._task = None
        connect, now_s = self.machine.connect, time.monotonic()
        if is_well and connect is not None:
            self._gate.disliked.add(connect.whose, now_s)
        self.perform(self.machine.told(is_well, now_s))

    # -- once a broker has answered

    def _begin_flow(self) -> None:
        """The event loop calls the session's own flows from now on; behind layers, this side does."""
        gate, session, side = self._gate, self.machine.session, self.side
        assert session is not None
        gate.accepted(self)
        if side is None or side.transport is None or side.transport.is_closing() or self.transport is None:
            self.close()
            return
        if self.machine.translation is None:
            self._flow = DeviceFlow(self, session, side.transport.write, time.monotonic)
            sockets.hand_over(self.transport, self, self._flow)
            sockets.hand_over(side.transport, side, BrokerFlow(side, session, self.transport.write))


_DOING: dict[Do, Callable[[DeviceSide], None]] = {
    Do.PAUSE_DEVICE: lambda side: sockets.pause(side.transport),
    Do.RESUME_DEVICE: lambda side: sockets.resume(side.transport),
    Do.PAUSE_BROKER: DeviceSide._pause_broker,
    Do.RESUME_BROKER: DeviceSide._resume_broker,
    Do.CLOSE_DEVICE: DeviceSide.close,
    Do.CLOSE_BROKER: DeviceSide._close_broker,
    Do.ABORT_BROKER: DeviceSide._abort_broker,
    Do.END_WRITING: DeviceSide._end_writing,
    Do.AWAIT_TURN: DeviceSide._await_turn,
    Do.LEAVE_LINE: lambda side: side._gate.gives_up(side),
    Do.DIAL: DeviceSide._dial,
    Do.FLOW: DeviceSide._begin_flow,
    Do.FORGET: lambda side: side._gate.forget(side),
}
