"""The half of a device's connection that reaches to a broker."""

import asyncio
from typing import TYPE_CHECKING, cast

from tidegate.gateway.connection.session import Session
from tidegate.gateway.layers import sockets
from tidegate.model.routes import Broker

if TYPE_CHECKING:
    from tidegate.gateway.device_side import DeviceSide


class BrokerSide(asyncio.Protocol):
    """One attempt to reach a broker and, once that has answered CONNECT, the connection itself."""

    __slots__ = ("_device", "_session", "answered", "broker", "is_full", "lost", "transport")

    def __init__(self, device: "DeviceSide", broker: Broker, session: Session) -> None:
        loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.answered: asyncio.Future[bool] = loop.create_future()  # whether a CONNACK came
        self.lost: asyncio.Future[None] = loop.create_future()
        self.broker = broker
        self.is_full = False  # no more may be written for now
        self._device = device
        self._session = session

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=sockets.WRITE_BUFFER_BYTES_MAX)
        sockets.notice_dead_peers(self.transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        session = self._session
        forward = session.from_broker(data)
        if not self.answered.done() and not self._has_answer(session):
            return
        if forward:
            self._device.deliver(forward)
        if session.problem:
            self.end(session)

    def end(self, session: Session) -> None:
        """What the broker says cannot be passed on."""
        self._device.end(session.problem, session.code)

    def _has_answer(self, session: Session) -> bool:
        """Whether the broker has answered CONNECT, in a version that the device speaks."""
        if session.return_code is None:
            if session.problem:
                self.close()
            return False
        self.answered.set_result(not session.speaks_older)
        return not session.speaks_older

    def eof_received(self) -> None:
        """The broker hangs up: the transport closes itself, and with it the device's."""

    def connection_lost(self, _: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if not self.answered.done():
            self.answered.set_result(False)
        elif not self.answered.cancelled() and self.answered.result():
            self._device.broker_left()

    def pause_writing(self) -> None:
        self.is_full = True
        self._device.pause_reading()

    def resume_writing(self) -> None:
        self.is_full = False
        self._device.resume_reading()

    def write(self, data: bytes) -> None:
        sockets.write(self.transport, data)

    def close(self) -> None:
        sockets.close(self.transport)
