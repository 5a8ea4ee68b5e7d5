"""Connections for readings by HTTP: one that is silent keeps nobody else out.

A device connects and sends its request at once. So a connection on which no request is whole within ``HEADERS_S`` is
closed, and so is, where too many are open, a silent one for each that comes.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S = 5.0
CONNECTIONS_MAX = 1_024  # per process


class GuardedProtocol(HttpToolsProtocol):
    """How many requests are served at a time is the application's affair."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._answered: object = None  # the last request that was seen, if any
        self._looks: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= CONNECTIONS_MAX and not self._displace():
            transport.abort()
            return
        super().connection_made(transport)
        self._looks = self.loop.call_later(HEADERS_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looks is not None:
            self._looks.cancel()
            super().connection_lost(exc)

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _displace(self) -> bool:
        """Connections are in no order, and this happens only where somebody attacks: any silent one will do."""
        silent = next((one for one in self.connections if isinstance(one, GuardedProtocol) and one.is_silent), None)
        if silent is not None:
            self.connections.discard(silent)
            silent.transport.abort()
        return silent is not None

    def _look(self) -> None:
        """Every few seconds: has a request come since the last time, or is one being answered?"""
        if self.is_silent and self.cycle is self._answered:
            self.transport.close()
            return
        self._answered = self.cycle
        self._looks = self.loop.call_later(HEADERS_S, self._look)
