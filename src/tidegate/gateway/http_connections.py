"""Connections for readings by HTTP: they count like any other, and one that is silent keeps nobody else out.

A device connects and sends its request at once. So a connection on which no request is whole within ``HEADERS_S`` (the
handshake of TLS included) is closed, and so is, where too many are open, a silent one for each that comes. Nobody sends
more than ``SILENT_BYTES_MAX`` without being asked to.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.gateway.gate import Gate
from tidegate.gateway.layers.layer import Peer, peer_of, peer_of_socket
from tidegate.gateway.listening import Bound, serve
from tidegate.gateway.settings import GatewaySettings

HEADERS_S = 5.0
CONNECTIONS_MAX = 1_024  # per process
# The head of a request, and a body that nobody reads because its request was refused by its head.
SILENT_BYTES_MAX = 131_072
CLOSE_S = 1


class GuardedProtocol(HttpToolsProtocol):
    """How many requests are served at a time is the application's affair. It finds the ``peer`` in a request's state.

    Behind layers it is connected from the start: what is between them and the first request is silence.
    """

    def __init__(self, gate: Gate, **given: Any) -> None:
        super().__init__(**given)
        self._gate = gate
        self._answered: object = None  # the last request that was seen, if any
        self._looks: asyncio.TimerHandle | None = None
        self._silent_bytes = 0
        self._peer: Peer | None = None
        self._address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        if (len(self.connections) >= CONNECTIONS_MAX or self._gate.is_full) and not displace(self.connections):
            self._gate.counters.refuse("too many connections")
            transport.abort()
            return
        self._address = peer_of_socket(transport).address[0]
        if not self._gate.admit_http(self._address):
            transport.abort()
            return
        super().connection_made(transport)
        self._looks = self.loop.call_later(HEADERS_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looks is not None:
            self._looks.cancel()
            self._gate.leave_http(self._address)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if not self.is_silent or self.cycle is not before:
            self._silent_bytes = 0
            return
        self._silent_bytes += len(data)
        if self._silent_bytes > SILENT_BYTES_MAX:
            self.end("packet too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._peer is None:
            self._peer = peer_of(self.transport)
        self.scope["state"]["peer"] = self._peer

    def end(self, reason: str) -> None:
        """A layer below, or this one, cannot go on."""
        if not self.transport.is_closing():
            self._gate.counters.refuse(reason)
            self.transport.close()

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Every few seconds: has a request come since the last time, or is one being answered?"""
        if self.is_silent and self.cycle is self._answered:
            self.transport.close()
            return
        self._answered = self.cycle
        self._looks = self.loop.call_later(HEADERS_S, self._look)


def displace(connections: set[Any]) -> bool:
    """Connections are in no order, and this happens only where somebody attacks: any silent one will do."""
    silent = next((one for one in connections if isinstance(one, GuardedProtocol) and one.is_silent), None)
    if silent is not None:
        connections.discard(silent)
        silent.transport.abort()
    return silent is not None


class HttpServer(uvicorn.Server):
    """One listener for HTTP. Its layers are those of every other listener, and signals belong to the process."""

    def __init__(self, app: FastAPI, bound: Bound, settings: GatewaySettings, gate: Gate) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            http=GuardedProtocol,
            ws="none",
            timeout_graceful_shutdown=CLOSE_S,
        )
        super().__init__(config)
        self._bound, self._settings, self._gate = bound, settings, gate
        others = gate.displace_http
        gate.displace_http = lambda: displace(self.server_state.connections) or others()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        del sockets  # the one that is bound
        self.servers = [await serve(self._bound, self._settings, self._connection)]
        self.started = True

    def _connection(self) -> GuardedProtocol:
        return GuardedProtocol(
            self._gate,
            config=self.config,
            server_state=self.server_state,
            app_state={},
            _loop=asyncio.get_running_loop(),
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
