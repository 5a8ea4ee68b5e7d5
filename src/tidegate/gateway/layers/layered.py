"""The asyncio shell of a connection with layers: between the socket and a protocol that knows nothing of them."""

import asyncio
from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol, cast

from tidegate.gateway.layers import sockets
from tidegate.gateway.layers.layer import PEER, Layer, peer_of_socket


class Inner(Protocol):
    """What a device's connection is to its layers: an asyncio protocol that can also be ended for a reason."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def end(self, reason: str) -> None: ...


class Layered(asyncio.Protocol):
    """Passes what the layers carry. The inner protocol is connected from the start, so its deadline covers them all."""

    __slots__ = ("_inner", "_keeps_open", "_layers", "_transport", "_writable")

    def __init__(self, inner: Inner, layers: Sequence[Layer]) -> None:
        self._inner = inner
        self._layers = tuple(layers)  # that next to the wire first
        self._transport: LayeredTransport | None = None
        self._writable = True
        self._keeps_open: bool | None = None  # what the inner protocol said when the peer had no more to send

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = LayeredTransport(cast(asyncio.Transport, transport), self._layers)
        self._inner.connection_made(self._transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        for layer in self._layers:
            data = layer.receive(data)
            if not data:
                break
        # What the layers have to say goes first: it may open what the inner protocol answers through.
        if answers := self._transport.take_answers():
            if self._writable:
                self._transport.write_wire(answers)
            else:
                self._inner.end("answers are not read")
                return
        if data:
            self._inner.data_received(data)
        for layer in self._layers:
            if layer.problem:
                self._inner.end(layer.problem)
            elif layer.ended and not self._transport.is_closing():
                self.eof_received()

    def eof_received(self) -> bool:
        """The peer sends no more, be it that a layer or that the socket says so; both may."""
        assert self._transport is not None
        if self._keeps_open is None:
            self._keeps_open = bool(self._inner.eof_received())
            if not self._keeps_open:
                self._transport.close()
        return self._keeps_open

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._writable = False
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._writable = True
        self._inner.resume_writing()


class LayeredTransport(asyncio.Transport):
    """The inner protocol's transport: what is written passes through the layers, all else is the socket's."""

    __slots__ = ("_inward", "_layers", "_wire")

    def __init__(self, wire: asyncio.Transport, layers: tuple[Layer, ...]) -> None:
        super().__init__()
        self._wire = wire
        self._layers = layers
        self._inward = layers[::-1]

    def write(self, data: Any) -> None:
        for layer in self._inward:
            if not data:  # an empty frame or record would still be one
                return
            data = layer.send(data)
        if data:
            self._wire.write(data)

    def write_wire(self, data: bytes) -> None:
        self._wire.write(data)

    def take_answers(self) -> bytes:
        """What the layers themselves have to say, each through those between it and the wire."""
        said = b""
        for layer in self._inward:
            said = (layer.send(said) + layer.answer()) if said else layer.answer()
        return said

    def close(self) -> None:
        """Say farewell in every layer, then close when all has gone out, and at the latest after a while."""
        if self._wire.is_closing():
            return
        said = b""
        for layer in self._inward:
            said = (layer.send(said) + layer.farewell()) if said else layer.farewell()
        if said:
            self._wire.write(said)
        sockets.close(self._wire)

    def abort(self) -> None:
        self._wire.abort()

    def is_closing(self) -> bool:
        return self._wire.is_closing()

    def pause_reading(self) -> None:
        self._wire.pause_reading()

    def resume_reading(self) -> None:
        self._wire.resume_reading()

    def is_reading(self) -> bool:
        return self._wire.is_reading()

    def get_write_buffer_size(self) -> int:
        return self._wire.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._wire.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._wire.set_write_buffer_limits(high, low)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Whom the event loop calls: the layers."""
        return self._wire.get_protocol()

    def can_write_eof(self) -> bool:
        """TLS and WebSocket know how to end, not how to end one half."""
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name != PEER:
            return self._wire.get_extra_info(name, default)
        return reduce(lambda peer, layer: layer.describe(peer), self._layers, peer_of_socket(self._wire))
