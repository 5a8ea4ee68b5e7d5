"""Reaching a broker: which is next, how long one may take to answer, and how long to pause between attempts."""

import asyncio
import random

from tidegate.devices.connection import Connection
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.errors import BrokerUnavailableError


class Dialler:
    """Tries the addresses in turn; ``connect`` is the CONNECT packet that every attempt begins with."""

    def __init__(
        self, addresses: tuple[tuple[str, int], ...], connect: bytes, settings: PublisherSettings, jitter: random.Random
    ) -> None:
        self._addresses, self._connect, self._settings, self._jitter = addresses, connect, settings, jitter
        self._turn = 0

    def next_address(self) -> tuple[str, int]:
        address = self._addresses[self._turn % len(self._addresses)]
        self._turn += 1
        return address

    def pause_s(self, attempts: int) -> float:
        settings = self._settings
        # The first round over the other brokers is quick; only when all have failed do the pauses grow.
        rounds = min(attempts // len(self._addresses), 20)
        grown_s = settings.backoff_s_min * float(1 << rounds)
        return min(settings.backoff_s_max, grown_s) * self._jitter.uniform(0.5, 1.0)

    async def open(self, connection: Connection, host: str, port: int) -> None:
        async with asyncio.timeout(self._settings.connect_timeout_s):
            await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
            assert connection.transport is not None
            connection.transport.write(self._connect)
            await asyncio.wait((connection.answered, connection.lost), return_when=asyncio.FIRST_COMPLETED)
        if not connection.answered.done():
            raise BrokerUnavailableError(connection.lost.result())
        if refusal := connection.answered.result().refusal():
            raise BrokerUnavailableError(f"it refused the connection: {refusal}")
