"""Documents of the control bus, kept current for an asyncio program.

A message on a document's subject is only a nudge: its sender may have lost a compare-and-set, so the value is always
read from the store itself. It is also read every few seconds, because a nudge can be lost. While the bus is away the
last known values stay, and the connection is tried for ever.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError

from tidegate.bus import journals, key_value
from tidegate.bus.documents import Document, Journal
from tidegate.bus.key_value import Answer, Entry, Request
from tidegate.machine.tasks import end
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, TooLargeError

REREAD_S = 3.0
REQUEST_TIMEOUT_S = 2.0
RECONNECT_S = 0.5

T = TypeVar("T")
# Document, value (None: there is none any more), revision, and when it was written, by the bus's clock (Unix time).
# Called in the event loop, once per change.
Changed = Callable[[Document[Any], Any, int, float], None]
# A document that cannot be read, once per change.
Damaged = Callable[[DamagedDocumentError], None]


def _ignore_value(_document: Document[Any], _value: Any, _revision: int, _written_s: float) -> None:
    """For a program that only speaks on the bus."""


def _ignore_damage(_error: DamagedDocumentError) -> None:
    """For a program that watches nothing."""


class Watcher:
    """``start`` returns at once; ``changed`` is called as soon as the bus has answered, and then on every change."""

    def __init__(
        self,
        urls: Sequence[str],
        documents: Sequence[Document[Any]] = (),
        changed: Changed = _ignore_value,
        damaged: Damaged = _ignore_damage,
        *,
        name: str,
        reread_s: float = REREAD_S,
    ) -> None:
        self._urls = list(urls)
        self._documents = tuple(documents)
        self._changed, self._damaged = changed, damaged
        self._name = name
        self._reread_s = reread_s
        self._client = Client()
        self._revisions: dict[str, int] = {}
        self._answers: dict[str, Callable[[bytes], bytes | None]] = {}
        self._nudged = asyncio.Event()
        self._known = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch(), name=f"watcher {self._name}")

    async def stop(self) -> None:
        if self._task is None:
            return
        await end(self._task)
        with contextlib.suppress(NatsError, OSError, TimeoutError):
            async with asyncio.timeout(RECONNECT_S):
                await self._client.close()

    @property
    def connected(self) -> bool:
        return self._client.is_connected

    async def first_read(self, timeout_s: float) -> bool:
        """Wait until every document was read once; False where the bus did not answer in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._known.wait()
        except TimeoutError:
            return False
        return True

    def answer(self, subject: str, answer: Callable[[bytes], bytes | None]) -> None:
        """Answer questions that somebody asks everybody on the bus; None is silence. Before ``start``."""
        self._answers[subject] = answer

    async def get(self, document: Document[T], name: str = "") -> T | None:
        """One that is not watched."""
        entry = await self._get(document.key_of(name))
        return None if entry is None else document.decode(entry.value, name)

    async def put(self, document: Document[T], value: T, name: str = "", *, lease_s: float | None = None) -> int:
        """Store and return the new revision. With a lease the document vanishes unless it is put again in time."""
        key = document.key_of(name)
        document.check_lease(lease_s)
        request = key_value.to_put(key, document.encode(value), revision=None, lease_s=lease_s)
        revision = key_value.put(key, await self._ask(request, key))
        assert revision is not None, "without an expected revision there is none to differ from"
        return revision

    async def create(self, journal: Journal[Any]) -> None:
        """Make a journal, unless it is there; one that another version made gets the bounds of this one, if it can."""
        if not journals.created(journal, await self._ask(journals.to_create(journal), journal.stream)):
            journals.updated(journal, await self._ask(journals.to_update(journal), journal.stream))

    async def append(self, journal: Journal[T], record: T, name: str, identity: str) -> None:
        """``identity`` is the record's own: one that has to be appended again is still stored once."""
        request = journals.to_append(journal, record, name, identity)
        journals.appended(journal, await self._ask(request, journal.stream))

    async def _get(self, key: str) -> Entry | None:
        return key_value.got(key, await self._ask(key_value.to_get(key), key))

    async def _ask(self, request: Request, key: str) -> Answer:
        if not self.connected:
            raise BrokerUnavailableError(f"The control bus is away: {key} waits until it is back.", where=key)
        try:
            answer = await self._client.request(
                request.subject, request.payload, timeout=REQUEST_TIMEOUT_S, headers=request.headers
            )
        except MaxPayloadError:
            size = len(request.payload)
            raise TooLargeError(f"{key} has {size:,} bytes, more than the control bus takes.", where=key) from None
        except (NatsError, OSError, TimeoutError) as error:
            raise BrokerUnavailableError(f"The control bus did not answer for {key}: {error}.", where=key) from None
        return Answer(answer.headers or {}, answer.data)

    async def _watch(self) -> None:
        await self._connect()
        for document in self._documents:
            await self._client.subscribe(key_value.subject_of(document.key_of()), cb=self._nudge)
        for subject, answer in self._answers.items():
            await self._client.subscribe(subject, cb=_answering(answer))
        while True:
            self._nudged.clear()
            with contextlib.suppress(BrokerUnavailableError):
                for document in self._documents:
                    self._compare(document, await self._get(document.key_of()))
                self._known.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._reread_s):
                    await self._nudged.wait()

    async def _connect(self) -> None:
        while True:
            with contextlib.suppress(NatsError, OSError, TimeoutError):
                await self._client.connect(
                    self._urls,
                    name=self._name,
                    error_cb=_ignore_error,
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

    def _compare(self, document: Document[Any], entry: Entry | None) -> None:
        revision = entry.revision if entry is not None else 0
        if self._revisions.get(document.key) == revision:
            return
        self._revisions[document.key] = revision
        try:
            value = None if entry is None else document.decode(entry.value)
        except DamagedDocumentError as error:
            self._damaged(error)
        else:
            self._changed(document, value, revision, 0.0 if entry is None else entry.written_s)


def _answering(answer: Callable[[bytes], bytes | None]) -> Callable[[Msg], Awaitable[None]]:
    async def answered(asked: Msg) -> None:
        said = answer(asked.data)
        if said is not None and asked.reply:
            await asked.respond(said)

    return answered


async def _ignore_error(_: Exception) -> None:
    """An error of the connection ends in a reconnect, and a request that failed raises by itself."""
