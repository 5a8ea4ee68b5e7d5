"""Named documents of the shared knowledge, kept current for an asyncio program.

A message on a document's subject is only a nudge: its sender may have lost a compare-and-set, so the value is always
read from the store itself. It is also read every few seconds, because a nudge can be lost. While the bus is away the
last known values stay, and the connection is tried for ever.
"""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from tidegate.bus.knowledge import BUCKET, Entry
from tidegate.model.errors import BrokerUnavailableError

REREAD_S = 3.0
REQUEST_TIMEOUT_S = 2.0
RECONNECT_S = 0.5
_STREAM = f"KV_{BUCKET}"
_PREFIX = f"$KV.{BUCKET}."

# Key, value (None: there is none any more), revision. Called in the event loop, once per change.
Changed = Callable[[str, bytes | None, int], None]


class Watcher:
    """``start`` returns at once; ``changed`` is called as soon as the bus has answered, and then on every change."""

    def __init__(
        self,
        urls: Sequence[str],
        keys: Sequence[str],
        changed: Changed,
        *,
        name: str,
        reread_s: float = REREAD_S,
    ) -> None:
        self._urls = list(urls)
        self._keys = tuple(keys)
        self._changed = changed
        self._name = name
        self._reread_s = reread_s
        self._client = Client()
        self._revisions: dict[str, int] = {}
        self._nudged = asyncio.Event()
        self._known = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch(), name=f"watcher {self._name}")

    async def stop(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(NatsError, OSError, TimeoutError):
            await asyncio.wait_for(self._client.close(), RECONNECT_S)

    @property
    def connected(self) -> bool:
        return self._client.is_connected

    async def first_read(self, timeout_s: float) -> bool:
        """Wait until every document was read once; False where the bus did not answer in time."""
        try:
            await asyncio.wait_for(self._known.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def get(self, key: str) -> Entry | None:
        answer = await self._request(f"$JS.API.DIRECT.GET.{_STREAM}.{_PREFIX}{key}", b"", key)
        headers = answer.headers or {}
        if headers.get("Status") == "404" or "KV-Operation" in headers:
            return None
        if "Nats-Sequence" not in headers:
            raise BrokerUnavailableError(
                f"The control bus did not give {key}: {headers.get('Description', 'no value')}."
            )
        return Entry(answer.data, int(headers["Nats-Sequence"]))

    async def put(self, key: str, value: bytes, *, lease_s: float | None = None) -> int:
        """Store and return the new revision. With a lease the document vanishes unless it is put again in time."""
        headers = {"Nats-TTL": f"{math.ceil(lease_s)}s"} if lease_s is not None else None
        answer = json.loads((await self._request(f"{_PREFIX}{key}", value, key, headers)).data)
        if "error" in answer:
            raise BrokerUnavailableError(f"The control bus did not take {key}: {answer['error']['description']}.")
        return int(answer["seq"])

    async def _request(self, subject: str, data: bytes, key: str, headers: dict[str, str] | None = None) -> Msg:
        if not self.connected:
            raise BrokerUnavailableError(f"The control bus is away: {key} waits until it is back.")
        try:
            return await self._client.request(subject, data, timeout=REQUEST_TIMEOUT_S, headers=headers)
        except (NatsError, OSError, TimeoutError) as error:
            raise BrokerUnavailableError(f"The control bus did not answer for {key}: {error}.") from None

    async def _watch(self) -> None:
        await self._connect()
        for key in self._keys:
            await self._client.subscribe(f"{_PREFIX}{key}", cb=self._nudge)
        while True:
            self._nudged.clear()
            with contextlib.suppress(BrokerUnavailableError):
                for key in self._keys:
                    self._compare(key, await self.get(key))
                self._known.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), self._reread_s)

    async def _connect(self) -> None:
        while True:
            with contextlib.suppress(NatsError, OSError, TimeoutError):
                await self._client.connect(
                    self._urls,
                    name=self._name,
                    error_cb=_ignore,
                    reconnected_cb=self._nudge,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_S,  # type: ignore[arg-type]
                    connect_timeout=REQUEST_TIMEOUT_S,  # type: ignore[arg-type]
                    ping_interval=5,
                )
                return
            await asyncio.sleep(RECONNECT_S)

    async def _nudge(self, *_: Msg) -> None:
        self._nudged.set()

    def _compare(self, key: str, entry: Entry | None) -> None:
        revision = entry.revision if entry is not None else 0
        if self._revisions.get(key) != revision:
            self._revisions[key] = revision
            self._changed(key, entry.value if entry is not None else None, revision)


async def _ignore(_: Exception) -> None:
    """An error of the connection ends in a reconnect, and a request that failed raises by itself."""
