"""What attackers meet in calm rounds: ``python -m tidegate_bench.hostile.sink`` prints its port, and takes everything.

They burn as much of the processors there as at the gateway, so that what they do to others is not their use of the
machine. It answers an opening, because an attack goes on only then, and closes soon.
"""

import asyncio
import os
import sys

from tidegate.machine.ports import HOST
from tidegate_bench.hostile.attacking import NICENESS

CLOSES_S = 0.2
_READ_BYTES_MAX = 65_536
_CONNACK, _CONNACK_5 = b"\x20\x02\x00\x00", b"\x20\x03\x00\x00\x00"
_LEVEL = 6  # where a CONNECT of fewer than 128 bytes has its version, behind its name


async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(CLOSES_S):
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


async def main() -> None:
    server = await asyncio.start_server(take, HOST, 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    os.nice(NICENESS)
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
