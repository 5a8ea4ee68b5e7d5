"""What is done to a connection from either side, safe at any moment of its life."""

import asyncio

WRITE_BUFFER_BYTES_MAX = 65_536
# How long a side that is to be closed may take to accept what is buffered for it.
LINGER_S = 5.0


def write(transport: asyncio.Transport | None, data: bytes) -> None:
    if transport is not None and not transport.is_closing():
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
