"""The control bus for a blocking program: documents of the catalogue, with compare-and-set and leases."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tidegate.bus import key_value
from tidegate.bus.documents import Document
from tidegate.bus.wire import Wire

T = TypeVar("T")


class Stored(NamedTuple, Generic[T]):
    value: T
    revision: int
    written_s: float  # by the bus's clock (Unix time)


class Bus:
    """One connection. It belongs to one thread, and is opened when it is first needed."""

    def __init__(self, urls: Sequence[str], *, name: str = "tidegate", timeout_s: float = 5.0) -> None:
        self.wire = Wire(urls, timeout_s=timeout_s, name=name)

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.wire.close()

    def create(self) -> None:
        """Make the place where documents are kept, unless it is there."""
        key_value.created(self._ask(key_value.to_create()))

    # -- one document

    def entry(self, document: Document[Any], name: str = "") -> key_value.Entry | None:
        """What is stored, whether it can be read or not."""
        key = document.key_of(name)
        return key_value.got(key, self._ask(key_value.to_get(key)))

    def stored(self, document: Document[T], name: str = "") -> Stored[T] | None:
        entry = self.entry(document, name)
        if entry is None:
            return None
        return Stored(document.decode(entry.value, name), entry.revision, entry.written_s)

    def get(self, document: Document[T], name: str = "") -> T | None:
        stored = self.stored(document, name)
        return None if stored is None else stored.value

    def put(
        self,
        document: Document[T],
        value: T,
        name: str = "",
        *,
        revision: int | None = None,
        lease_s: float | None = None,
    ) -> int | None:
        """Store and return the new revision; None if ``revision`` (0: must not exist) is no longer the current one."""
        key = document.key_of(name)
        document.check_lease(lease_s)
        request = key_value.to_put(key, document.encode(value), revision=revision, lease_s=lease_s)
        return key_value.put(key, self._ask(request))

    def delete(self, document: Document[Any], name: str = "", *, revision: int | None = None) -> None:
        """Take it away; with a revision, only if nothing newer was put there."""
        key = document.key_of(name)
        key_value.deleted(key, self._ask(key_value.to_delete(key, revision)))

    def change(self, document: Document[T], step: Callable[[T | None], T | None], name: str = "") -> T | None:
        """Apply ``step`` until nobody interferes; a step that returns None leaves the document as it is."""
        while True:
            stored = self.stored(document, name)
            before = stored.value if stored else None
            after = step(before)
            if after is None or after == before:
                return before
            if self.put(document, after, name, revision=stored.revision if stored else 0) is not None:
                return after

    def answers(self, subject: str, question: bytes, within_s: float) -> list[bytes]:
        """What everybody says who answers such questions, within a time."""
        inbox = self.wire.inbox()
        self.wire.publish(subject, question, reply=inbox)
        found: list[bytes] = []
        with contextlib.suppress(TimeoutError):
            for frame in self.wire.frames(time.monotonic() + within_s):
                if frame.subject == inbox.encode() and "Status" not in frame.fields():
                    found.append(frame.payload)
        return found

    # -- several

    def names(self, document: Document[Any]) -> list[str]:
        """Of a document of which there are several: whose there are."""
        return key_value.listed(self._ask(key_value.to_list(document.key)), document.key)

    def all(self, document: Document[T]) -> dict[str, T]:
        """All of a document of which there are several, by name."""
        return {name: document.decode(entry.value, name) for name, entry in self.entries(document).items()}

    def entries(self, document: Document[Any]) -> dict[str, key_value.Entry]:
        """What is stored of them, whether it can be read or not: asked for at once."""
        names = self.names(document)
        asked = [key_value.to_get(document.key_of(name)) for name in names]
        frames = self.wire.requests([(request.subject, request.payload) for request in asked])
        answers = zip(names, (key_value.Answer(frame.fields(), frame.payload) for frame in frames), strict=True)
        found = ((name, key_value.got(document.key_of(name), answer)) for name, answer in answers)
        return {name: entry for name, entry in found if entry is not None}

    def changed(self, document: Document[Any], revision: int) -> Iterator[tuple[str, key_value.Entry]]:
        """Those of them that were put behind a revision, in that order: one small question where none was."""
        while True:
            asked = self._ask(key_value.to_get_next(document.key, revision))
            found = key_value.got_next(document.key, asked)
            if found is None:
                return
            yield found
            revision = found[1].revision

    def keys(self) -> list[str]:
        """Every key there is, whether the catalogue knows it or not."""
        return key_value.listed(self._ask(key_value.to_list()))

    def _ask(self, request: key_value.Request) -> key_value.Answer:
        frame = self.wire.request(request.subject, request.payload, headers=request.headers)
        return key_value.Answer(frame.fields(), frame.payload)
