"""The half of a device's connection that reaches to a broker: a socket, and whom it tells."""

import asyncio
from typing import Protocol, cast

from tidegate.gateway.layers import sockets


class Owner(Protocol):
    """The connection that a broker's bytes are for."""

    def broker_data(self, side: "BrokerSide", data: bytes) -> None: ...
    def broker_lost(self, side: "BrokerSide") -> None: ...
    def broker_full(self, side: "BrokerSide", is_full: bool) -> None: ...


class BrokerSide(asyncio.Protocol):
    """One attempt to reach a broker and, once that has answered CONNECT, the connection itself."""

    __slots__ = ("_owner", "lost", "transport")

    def __init__(self, owner: Owner) -> None:
        self.transport: asyncio.Transport | None = None
        self.lost: asyncio.Future[None] | None = None  # whoever waits for the end
        self._owner = owner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=sockets.WRITE_BUFFER_BYTES_MAX)
        sockets.notice_dead_peers(self.transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        self._owner.broker_data(self, data)

    def eof_received(self) -> None:
        """The broker hangs up: the transport closes itself, and with it the device's."""

    def connection_lost(self, _: Exception | None) -> None:
        if self.lost is not None and not self.lost.done():
            self.lost.set_result(None)
        transport, self.transport = self.transport, None
        if transport is not None:
            self._owner.broker_lost(self)

    def pause_writing(self) -> None:
        self._owner.broker_full(self, True)

    def resume_writing(self) -> None:
        self._owner.broker_full(self, False)

    def end(self, session: object) -> None:
        """What the broker says cannot be passed on: its owner looks at the session."""
        del session
        self._owner.broker_data(self, b"")

    async def gone(self, within_s: float) -> None:
        """Wait until it has ended, for so long."""
        if self.transport is None:
            return
        if self.lost is None:
            self.lost = asyncio.get_running_loop().create_future()
        await asyncio.wait((self.lost,), timeout=within_s)
