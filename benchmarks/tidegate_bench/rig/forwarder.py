"""A bare forwarder: ``python -m tidegate_bench.rig.forwarder``. What any proxy in Python on uvloop costs at least.

It accepts, connects to the broker, and hands every chunk of bytes on as it came: nothing is parsed, counted or limited.
Like a gateway it consists of several processes on one port, and the kernel spreads clients over them. While one side
cannot be written to, the other is not read.
"""

import argparse
import asyncio
import os
import signal
from collections.abc import Callable
from typing import cast

import uvloop

from tidegate.machine.ports import HOST
from tidegate_bench.rig.processes import allow_open_files

BACKLOG = 4_096


class End(asyncio.Protocol):
    """One of the two connections; ``other`` is the one to which its bytes go, once there is one."""

    transport: asyncio.Transport
    other: "End | None" = None

    def __init__(self) -> None:
        self._early: list[bytes] = []
        self._hand_on: Callable[[bytes], None] = self._early.append

    def join(self, other: "End") -> None:
        """What came before the other side was there goes first."""
        self.other, self._hand_on = other, other.transport.write
        other.transport.writelines(self._early)
        self._early.clear()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._hand_on(data)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class ClientEnd(End):
    """As soon as a client is there, the broker is connected to."""

    def __init__(self, broker: tuple[str, int]) -> None:
        super().__init__()
        self._broker = broker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._dialling = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        try:
            _, broker_end = await asyncio.get_running_loop().create_connection(End, *self._broker)
        except OSError:
            self.transport.close()
            return
        if self.transport.is_closing():
            broker_end.transport.close()
        else:
            broker_end.join(self)
            self.join(broker_end)


async def serve(port: int, broker: tuple[str, int], parent: int) -> None:
    """Until the parent's end of the pipe is closed, which happens however the parent ends."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(parent, ended.set)
    async with await loop.create_server(lambda: ClientEnd(broker), HOST, port, reuse_port=True, backlog=BACKLOG):
        await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.rig.forwarder")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--broker-host", required=True)
    parser.add_argument("--broker-port", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    allow_open_files()
    reading, writing = os.pipe()
    for _ in range(options.processes):
        if os.fork() == 0:
            os.close(writing)
            uvloop.run(serve(options.port, (options.broker_host, options.broker_port), reading))
            return
    signal.pause()


if __name__ == "__main__":
    main()
