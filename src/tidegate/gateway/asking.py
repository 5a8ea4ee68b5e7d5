"""One question to a broker, on a connection of its own: does it answer this CONNECT?

And what that tells of the broker. One that hangs up on a client's CONNECT may be ill, or may not like that client: only
what it does for others tells. So whoever is hung up on waits only where the broker answers nobody else either; where
nobody else has asked, the gateway asks in its own name, one question at a time for all who want to know.
"""

import asyncio
import time
from collections.abc import Callable

from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.proxy import encode_header
from tidegate.model.routes import Broker
from tidegate.mqtt.client import DISCONNECT
from tidegate.mqtt.packets import CONNACK

NOBODY = Peer(address=("", 0))
HUNG_UP = -1  # in the place of a code
_CONNACK_BYTES = 4


async def ask(broker: Broker, packet: bytes, timeout_s: float, peer: Peer = NOBODY) -> int | None:
    """Connect and leave. The code of the broker's answer, ``HUNG_UP`` where it closed instead, None where it is silent
    or not there."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            if broker.proxy_protocol:
                writer.write(encode_header(peer, peer.address))
            writer.write(packet)
            answer = await _answer(reader)
            if answer is None or answer[0] != CONNACK:
                return HUNG_UP
            if answer[3] == 0:
                writer.write(DISCONNECT)
                writer.write_eof()
                await reader.read()
            return answer[3]
    except (OSError, TimeoutError):
        return None
    finally:
        if writer is not None:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readexactly(_CONNACK_BYTES)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class Evidence:
    """When each broker last answered anybody. ``packet`` is a CONNECT in the gateway's own name."""

    def __init__(self, packet: bytes, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._packet, self._timeout_s, self._clock = packet, timeout_s, clock
        self._answered_s: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def answered(self, broker: Broker) -> None:
        """Somebody's CONNECT, be it with a refusal."""
        self._answered_s[broker.name] = self._clock()

    async def is_well(self, broker: Broker, since_s: float) -> bool:
        """Whether it has answered anybody since then."""
        if self._answered_s.get(broker.name, -1.0) < since_s:
            task = self._asking.get(broker.name)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._ask(broker), name=f"asking {broker.name}")
                self._asking[broker.name] = task
            await asyncio.shield(task)
        return self._answered_s.get(broker.name, -1.0) >= since_s

    async def _ask(self, broker: Broker) -> None:
        try:
            if await ask(broker, self._packet, self._timeout_s) not in (None, HUNG_UP):
                self.answered(broker)
        finally:
            del self._asking[broker.name]

    def stop(self) -> None:
        for task in self._asking.values():
            task.cancel()
