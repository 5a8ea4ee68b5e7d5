"""What attackers meet in calm: ``python -m tidegate_bench.hostile.sink [SECONDS]`` prints its port, and takes all.

They burn as much of the processors there as at the gateway, so that what they do to others is not their use of the
machine. It answers an opening, because an attack goes on only then, and closes after these seconds.
"""

import asyncio
import os
import sys
from typing import cast

from tidegate.machine.ports import HOST
from tidegate_bench.hostile.attacking import NICENESS
from tidegate_bench.rig import processes

CLOSES_S = 0.2
BACKLOG = 4_096
_CONNACK, _CONNACK_5 = b"\x20\x02\x00\x00", b"\x20\x03\x00\x00\x00"
_LEVEL = 6  # where a CONNECT of fewer than 128 bytes has its version, behind its name


class Taken(asyncio.Protocol):
    """One connection: an answer to what comes first, and none to the rest."""

    def __init__(self, closes_s: float) -> None:
        self._closes_s = closes_s
        self._answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._closes = asyncio.get_running_loop().call_later(self._closes_s, transport.close)

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._transport.write(answer(data))
        self._answered = True

    def connection_lost(self, _: Exception | None) -> None:
        self._closes.cancel()


def answer(data: bytes) -> bytes:
    """To the first bytes of a connection."""
    if data.startswith(b"GET "):
        return b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    if data[:1] == b"\x10":
        return _CONNACK_5 if data[2 + _LEVEL : 3 + _LEVEL] == b"\x05" else _CONNACK
    return b""


async def main(closes_s: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Taken(closes_s), HOST, 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    os.nice(NICENESS)
    processes.allow_open_files()
    try:
        asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else CLOSES_S))
    except KeyboardInterrupt:
        sys.exit(0)
