"""Clients that behave: each publishes at QoS 1 and times its acknowledgement; others come, and time their CONNACK."""

import asyncio
import contextlib
import itertools
import ssl
import time

from tidegate.bus.issued import Credentials
from tidegate.model.readings import TELEMETRY
from tidegate.mqtt.client import DISCONNECT, encode_connect, encode_publish
from tidegate_bench.hostile.waits import Sample, Waits

CLIENTS = 30
NEWCOMERS = 2
EVERY_S = 0.1
NEW_EVERY_S = 0.05
READING = b'{"value": 21.5, "note": "as long as the readings of many devices are, with some words about where it is"}'
_PUBACK_BYTES = 4
_CONNACK_BYTES = 4


class Bystanders:
    """Use as an asynchronous context manager. Newcomers may come by another listener, with TLS or without."""

    def __init__(
        self,
        address: tuple[str, int],
        as_whom: Credentials,
        *,
        newcomers: tuple[str, int] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address, self._as_whom = address, as_whom
        self._newcomers, self._tls = newcomers or address, tls
        self._publishes, self._connects = Waits(EVERY_S), Waits(NEW_EVERY_S)
        self._lost = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Bystanders":
        for number in range(CLIENTS):
            self._tasks.append(asyncio.create_task(self._live(number)))
            await asyncio.sleep(EVERY_S / CLIENTS)
        self._tasks += [asyncio.create_task(self._come_and_go(number)) for number in range(NEWCOMERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def sample(self) -> Sample:
        """What they met since the last one."""
        lost, self._lost = self._lost, 0
        return Sample(delays_s=self._publishes.taken(), connects_s=self._connects.taken(), lost=lost)

    async def _live(self, number: int) -> None:
        """Connected until cancelled: a connection that ends is counted, and made anew."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._publish(number)
            self._lost += 1
            await asyncio.sleep(EVERY_S)

    async def _come_and_go(self, number: int) -> None:
        """One that is not taken on is lost."""
        for turn in itertools.count():
            packet = self._connect(f"newcomer-{number}-{turn % 1_000}")
            try:
                with self._connects.timed(number):
                    reader, writer = await asyncio.open_connection(*self._newcomers, ssl=self._tls)
                    writer.write(packet)
                    answer = await reader.readexactly(_CONNACK_BYTES)
                self._lost += answer[3] != 0
                writer.write(DISCONNECT)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                self._lost += 1
            await asyncio.sleep(NEW_EVERY_S)

    def _connect(self, name: str) -> bytes:
        user, password = self._as_whom(name)
        return encode_connect(name, user=user, password=password, keep_alive_s=60)

    async def _publish(self, number: int) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        name = f"bystander-{number}"
        try:
            writer.write(self._connect(name))
            await reader.readexactly(_CONNACK_BYTES)
            packet = encode_publish(f"{TELEMETRY}/{name}".encode(), READING, packet_id=1)
            due_s = time.monotonic()
            while True:
                due_s = max(due_s + EVERY_S, time.monotonic() - EVERY_S)
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                with self._publishes.timed(number):
                    writer.write(packet)
                    await reader.readexactly(_PUBACK_BYTES)
        finally:
            writer.close()
