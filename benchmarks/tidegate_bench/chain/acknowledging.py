"""A broker that only acknowledges: ``python -m tidegate_bench.chain.acknowledging``. It shows what a load can do alone.

It says its port in a line of JSON and serves until it is killed.
"""

import asyncio
import json
import sys

from tidegate.machine.ports import HOST
from tidegate.mqtt.frames import FrameScanner, frames_of

PACKET_BYTES_MAX = 1024**2
_CONNECT, _PUBLISH = 1, 3
_CONNACK = b"\x20\x02\x00\x00"


class Acknowledging(asyncio.Protocol):
    """One connection: every CONNECT is accepted, every PUBLISH at QoS 1 acknowledged."""

    def __init__(self) -> None:
        self._scanner = FrameScanner(PACKET_BYTES_MAX)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        whole = self._scanner.scan(data)
        answers = []
        for first, body, _ in frames_of(whole):
            if first >> 4 == _PUBLISH:
                place = body + 2 + (whole[body] << 8 | whole[body + 1])
                answers.append(b"\x40\x02" + whole[place : place + 2])
            elif first >> 4 == _CONNECT:
                answers.append(_CONNACK)
        self._transport.write(b"".join(answers))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Acknowledging, HOST, 0, backlog=1_024)
    sys.stdout.write(json.dumps({"port": server.sockets[0].getsockname()[1]}) + "\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
