"""Devices that behave and come by HTTP: each connects for each of its readings, and times the 204."""

import asyncio
import itertools

from tidegate.bus.issued import Credentials
from tidegate.model.readings import TELEMETRY
from tidegate_bench.hostile.bystanders import EVERY_S
from tidegate_bench.hostile.waits import Sample, Waits

SENDERS = 4
_TAKEN = b"HTTP/1.1 204"


class HttpSenders:
    """Use as an asynchronous context manager."""

    def __init__(self, address: tuple[str, int], as_whom: Credentials) -> None:
        self._address, self._as_whom = address, as_whom
        self._waits = Waits(EVERY_S)
        self._lost = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "HttpSenders":
        self._tasks = [asyncio.create_task(self._send_all(number)) for number in range(SENDERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def sample(self) -> Sample:
        lost, self._lost = self._lost, 0
        return Sample(http_s=self._waits.taken(), lost=lost)

    async def _send_all(self, number: int) -> None:
        for sequence in itertools.count(1):
            try:
                with self._waits.timed(number):
                    answer = await self._send(self._request(f"sender-{number}", sequence))
                self._lost += not answer.startswith(_TAKEN)
            except OSError:
                self._lost += 1
            await asyncio.sleep(EVERY_S)

    async def _send(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(request)
            return await reader.readline()
        finally:
            writer.close()

    def _request(self, name: str, sequence: int) -> bytes:
        body = b'{"value": 21.5, "boot": 1, "seq": %d}' % sequence
        lines = [f"POST /v1/{TELEMETRY}/{name} HTTP/1.1", "Host: gateway", f"Content-Length: {len(body)}"]
        lines += [f"Authorization: Bearer {self._as_whom(name)[1]}", "Connection: close"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
