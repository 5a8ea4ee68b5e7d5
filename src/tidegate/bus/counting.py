"""How many names a register has, without reading all of it again: only shards that were put since are read."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from tidegate.bus.client import Bus
from tidegate.bus.documents import Document
from tidegate.bus.key_value import Entry
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.registration import Revocation

T = TypeVar("T")


class ShardCounts(Generic[T]):
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus, document: Document[T], count: Callable[[T], int]) -> None:
        self._bus, self._document, self._count = bus, document, count
        self._revision = 0
        self._counts: dict[str, int] = {}
        self._damaged: dict[str, str] = {}  # why a shard cannot be counted, in a sentence

    def read(self) -> int | None:
        """How many there are now; None while a shard cannot be read."""
        shards = set(self._bus.names(self._document))
        if self._seen - shards:  # what is deleted is not told of
            self.forget()
        self._take_in()
        if shards - self._seen:  # the bus has begun anew, and its revisions with it
            self.forget()
            self._take_in()
        return None if self._damaged else sum(self._counts.values())

    def forget(self) -> None:
        """The next look reads every shard."""
        self._revision, self._counts, self._damaged = 0, {}, {}

    @property
    def alarms(self) -> tuple[str, ...]:
        return tuple(self._damaged.values())

    @property
    def _seen(self) -> set[str]:
        return self._counts.keys() | self._damaged.keys()

    def _take_in(self) -> None:
        for shard, entry in self._bus.changed(self._document, self._revision):
            self._take(shard, entry)
            self._revision = entry.revision

    def _take(self, shard: str, entry: Entry) -> None:
        self._counts.pop(shard, None)
        self._damaged.pop(shard, None)
        try:
            self._counts[shard] = self._count(self._document.decode(entry.value, shard))
        except DamagedDocumentError as error:
            self._damaged[shard] = str(error)


def refused_altogether(names: Mapping[str, Revocation]) -> int:
    """A name that was only given a new password is none of them."""
    return sum(one.everywhere for one in names.values())
