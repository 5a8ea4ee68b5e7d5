"""What attackers meet in calm: ``python -m tidegate_bench.hostile.sink [SECONDS]`` prints its port, and takes all.

They burn as much of the processors there as at the gateway, so that what they do to others is not their use of the
machine. It answers an opening, because an attack goes on only then, and closes after these seconds.
"""

import asyncio
import functools
import os
import sys

from tidegate.machine.ports import HOST
from tidegate_bench.hostile.attacking import NICENESS
from tidegate_bench.rig import processes

CLOSES_S = 0.2
BACKLOG = 4_096
_READ_BYTES_MAX = 65_536
_CONNACK, _CONNACK_5 = b"\x20\x02\x00\x00", b"\x20\x03\x00\x00\x00"
_LEVEL = 6  # where a CONNECT of fewer than 128 bytes has its version, behind its name


async def take(closes_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(closes_s):
            data = await reader.read(_READ_BYTES_MAX)
            writer.write(answer(data))
            while await reader.read(_READ_BYTES_MAX):
                pass
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()


def answer(data: bytes) -> bytes:
    """To the first bytes of a connection."""
    if data.startswith(b"GET "):
        return b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    if data[:1] == b"\x10":
        return _CONNACK_5 if data[2 + _LEVEL : 3 + _LEVEL] == b"\x05" else _CONNACK
    return b""


async def main(closes_s: float) -> None:
    server = await asyncio.start_server(functools.partial(take, closes_s), HOST, 0, backlog=BACKLOG)
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
