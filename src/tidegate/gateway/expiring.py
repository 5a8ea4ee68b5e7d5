"""Sessions of MQTT 5 clients at brokers that know only 3.1.1: they are deleted there when their time is over.

A session of 3.1.1 ends when its client connects once more, clean. So that is what the gateway does, in the client's
name, unless the client came back meanwhile. It remembers in this process alone: what a process that ends had still to
delete stays at the broker.
"""

import asyncio
import contextlib
from collections.abc import Callable

from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.proxy import encode_header
from tidegate.model.routes import Broker
from tidegate.mqtt.client import DISCONNECT
from tidegate.mqtt.packets import CONNACK

NOBODY = Peer(address=("", 0))
_CONNACK_BYTES = 4


async def delete_session(broker: Broker, packet: bytes, timeout_s: float, peer: Peer = NOBODY) -> bool:
    """Connect clean, in the client's name, and leave; whether the broker took it."""
    writer: asyncio.StreamWriter | None = None
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(broker.host, broker.port)
                if broker.proxy_protocol:
                    writer.write(encode_header(peer, peer.address))
                writer.write(packet)
                answer = await reader.readexactly(_CONNACK_BYTES)
                writer.write(DISCONNECT)
                writer.write_eof()
                await reader.read()
                return answer[0] == CONNACK and answer[3] == 0
        finally:
            if writer is not None:
                writer.close()
    return False


class ExpiringSessions:
    """``is_gone`` says whether nobody has seen the client since the moment that it is given."""

    def __init__(self, clients_max: int, timeout_s: float, is_gone: Callable[[str, float], bool]) -> None:
        self._clients_max = clients_max
        self._timeout_s = timeout_s
        self._is_gone = is_gone
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._timers)

    def expire(self, client_id: str, broker: Broker, packet: bytes, *, after_s: float, left_at_s: float) -> None:
        """The client has left, and its session ends so much later."""
        self.keep(client_id)
        if len(self._timers) >= self._clients_max:
            self.keep(next(iter(self._timers)))
        loop = asyncio.get_running_loop()
        self._timers[client_id] = loop.call_later(after_s, self._begin, client_id, broker, packet, left_at_s)

    def keep(self, client_id: str) -> None:
        """The client is back."""
        timer = self._timers.pop(client_id, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        for client_id in tuple(self._timers):
            self.keep(client_id)
        for task in self._tasks:
            task.cancel()

    def _begin(self, client_id: str, broker: Broker, packet: bytes, left_at_s: float) -> None:
        del self._timers[client_id]
        if self._is_gone(client_id, left_at_s):
            task = asyncio.get_running_loop().create_task(self._delete(broker, packet))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, broker: Broker, packet: bytes) -> None:
        await delete_session(broker, packet, self._timeout_s)
