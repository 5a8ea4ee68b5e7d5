"""What the control bus knows of devices, for people: how many there are, which access and keys count, and one of them.

It has a thread and a connection of its own, because a large register takes a while to read, and gateways have half a
second to answer a question: neither may delay the lease.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tidegate.bus import register
from tidegate.bus.asking import device_report
from tidegate.bus.client import Bus
from tidegate.bus.counting import ShardCounts, refused_altogether
from tidegate.bus.documents import ACCESS, IDENTITY_KEYS, REGISTER, REVOKED, Document
from tidegate.model.clients import DeviceReport
from tidegate.model.credentials import Keys, password_of
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.first_reading import FIRST_DEVICE, FirstReading
from tidegate.model.installation import Installation
from tidegate.model.registration import Entry
from tidegate.model.view import IdentityState

COUNT_EVERY_S = 60.0
# A bus that was set back says less than there is, until its revisions have caught up: everything is read again.
RECOUNT_EVERY_S = 3600.0

Answer = TypeVar("Answer")
Value = TypeVar("Value")


class Devices:
    """``state`` and ``alarms`` are as of the last ``read``; while the bus is away they stand as they were."""

    def __init__(self, installation: Installation, name: str) -> None:
        self._installation = installation
        self._thread = ThreadPoolExecutor(1, "devices")
        self._bus = Bus(installation.control_urls, name=f"{name}-devices", timeout_s=2.0)
        self._registered = ShardCounts(self._bus, REGISTER, len)
        self._revoked = ShardCounts(self._bus, REVOKED, refused_altogether)
        self._counts: tuple[int | None, int | None] = (None, None)
        self._count_at_s = self._recount_at_s = 0.0
        self._first: FirstReading | None = None
        self._first_entry = Entry()
        self._damaged: list[str] = []
        self.state = IdentityState()
        self.alarms: tuple[str, ...] = ()

    def first_reading(self) -> FirstReading | None:
        """None while nobody could send it: without a gateway, without keys, or where that device is revoked."""
        return self._first

    async def look_up(self, name: str) -> DeviceReport:
        return await self._in_thread(lambda: device_report(self._bus, name))

    async def read(self) -> None:
        """That the bus is away is said by others who look at it, and what is damaged is read again next time."""
        with contextlib.suppress(BrokerUnavailableError, DamagedDocumentError):
            await self._in_thread(lambda: self._read(time.monotonic()))

    async def close(self) -> None:
        await self._in_thread(self._bus.close)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, now_s: float) -> None:
        self._damaged = []
        keys, access = self._readable(IDENTITY_KEYS), self._readable(ACCESS)
        if now_s >= self._count_at_s:
            self._count(now_s)
        self._first = self._first_of(keys)
        self.alarms = (*self._damaged, *self._registered.alarms, *self._revoked.alarms)
        self.state = IdentityState(
            registered=self._counts[0],
            revoked=self._counts[1],
            access_name="" if access is None else access.name,
            access_applied_at_s=0.0 if access is None else access.applied_at_s,
            key_id=None if keys is None else keys.current.id,
            previous_key_id=None if keys is None or keys.previous is None else keys.previous.id,
        )

    def _count(self, now_s: float) -> None:
        if now_s >= self._recount_at_s:
            self._registered.forget()
            self._revoked.forget()
            self._recount_at_s = now_s + RECOUNT_EVERY_S
        self._counts = self._registered.read(), self._revoked.read()
        if None not in self._counts:
            self._first_entry = register.entries(self._bus, [FIRST_DEVICE])[FIRST_DEVICE]
        self._count_at_s = now_s + COUNT_EVERY_S

    def _first_of(self, keys: Keys | None) -> FirstReading | None:
        mqtt = self._installation.gateway_mqtt
        if keys is None or mqtt is None or self._first_entry.is_revoked:
            return None
        password = password_of(keys.current, FIRST_DEVICE, self._first_entry.generation)
        return FirstReading(device=FIRST_DEVICE, password=password, mqtt=mqtt, http=self._installation.gateway_http)

    def _readable(self, document: Document[Value]) -> Value | None:
        try:
            return self._bus.get(document)
        except DamagedDocumentError as error:
            self._damaged.append(str(error))
            return None

    async def _in_thread(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
