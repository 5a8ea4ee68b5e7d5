"""Sessions of MQTT 5 clients at brokers that know only 3.1.1: they are deleted there when their time is over.

A session of 3.1.1 ends when its client connects once more, clean. So that is what the gateway does, in the client's
name, unless the client came back meanwhile. A client that comes back while its session is being deleted waits for that:
a broker that met both would end one of them. The gateway remembers in this process alone, and no more than fits:
what a process that ends, or has too many, had still to delete stays at the broker.
"""

import asyncio
from typing import Protocol

from tidegate.gateway.asking import ask
from tidegate.model.routes import Broker

BYTES_MAX = 16 * 1024**2  # of what has to be said to delete them; a CONNECT may have 64 KiB


class Absences(Protocol):
    """Who is nowhere, as all processes know it. Clients are named by what stands for them there."""

    def claim_absent(self, client: bytes, since_s: float) -> bool: ...

    def release_absent(self, client: bytes) -> None: ...


class ExpiringSessions:
    def __init__(self, clients_max: int, timeout_s: float, absences: Absences) -> None:
        self._clients_max = clients_max
        self._timeout_s = timeout_s
        self._absences = absences
        self._timers: dict[bytes, tuple[asyncio.TimerHandle, int]] = {}  # with the bytes that wait for it
        self._bytes = 0
        self._deleting: dict[bytes, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def expire(self, client: bytes, broker: Broker, packet: bytes, *, after_s: float, left_at_s: float) -> None:
        """The client has left, and its session ends so much later."""
        self.keep(client)
        if after_s <= 0:
            self._begin(client, broker, packet, left_at_s)
            return
        while self._timers and (len(self._timers) >= self._clients_max or self._bytes + len(packet) > BYTES_MAX):
            self.keep(next(iter(self._timers)))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(after_s, self._begin, client, broker, packet, left_at_s)
        self._timers[client] = timer, len(packet)
        self._bytes += len(packet)

    def keep(self, client: bytes) -> None:
        """The client is back."""
        timer, kept_bytes = self._timers.pop(client, (None, 0))
        self._bytes -= kept_bytes
        if timer is not None:
            timer.cancel()

    async def settled(self, client: bytes) -> None:
        """Wait until nothing is done in the client's name any more."""
        task = self._deleting.get(client)
        if task is not None:
            await asyncio.wait((task,))

    def stop(self) -> None:
        for client in tuple(self._timers):
            self.keep(client)
        for task in self._deleting.values():
            task.cancel()

    def _begin(self, client: bytes, broker: Broker, packet: bytes, left_at_s: float) -> None:
        self.keep(client)
        if client not in self._deleting and self._absences.claim_absent(client, left_at_s):
            task = asyncio.get_running_loop().create_task(self._delete(client, broker, packet))
            self._deleting[client] = task

    async def _delete(self, client: bytes, broker: Broker, packet: bytes) -> None:
        try:
            await ask(broker, packet, self._timeout_s)
        finally:
            del self._deleting[client]
            self._absences.release_absent(client)
