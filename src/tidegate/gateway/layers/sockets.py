"""What is done to a connection from either side, safe at any moment of its life."""

import asyncio
import contextlib
import socket
from typing import cast

WRITE_BUFFER_BYTES_MAX = 65_536
# How long a side that is to be closed may take to accept what is buffered for it.
LINGER_S = 5.0
# A peer that vanished without a word is noticed after idle + probes * interval seconds of silence.
_IDLE_S, _INTERVAL_S, _PROBES = 60, 15, 4


def hand_over(transport: asyncio.Transport, before: asyncio.BaseProtocol, after: object) -> None:
    """Let the event loop call another protocol from now on, where it calls this one."""
    if transport.get_protocol() is before:
        transport.set_protocol(cast(asyncio.BaseProtocol, after))


def write(transport: asyncio.Transport | None, data: bytes) -> None:
    """A transport that was told to send no more does not say so before it is written to."""
    if transport is not None and not transport.is_closing():
        with contextlib.suppress(RuntimeError):
            transport.write(data)


def pause(transport: asyncio.Transport | None) -> None:
    if transport is not None and not transport.is_closing() and transport.is_reading():
        transport.pause_reading()


def resume(transport: asyncio.Transport | None) -> None:
    if transport is not None and not transport.is_closing() and not transport.is_reading():
        transport.resume_reading()


def close(transport: asyncio.Transport | None) -> None:
    """Close when everything buffered has gone out, and at the latest after a while."""
    if transport is None or transport.is_closing():
        return
    buffered = transport.get_write_buffer_size()
    transport.close()
    if buffered:
        asyncio.get_running_loop().call_later(LINGER_S, transport.abort)


def notice_dead_peers(one: socket.socket) -> None:
    """A peer with a long keep-alive, or none, may be gone for hours before anything else tells.

    Connections have what their listening socket has.
    """
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", _IDLE_S), ("TCP_KEEPINTVL", _INTERVAL_S), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, option):
            one.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
