"""What the control bus says about identity, handed on to ``Identities``: keys, access, and shards of revoked names.

Revoked names may be many. One small document has the revision of each shard; only shards with another revision than the
one known are read.

Whoever restores a bus that has lost everything writes the keys last: without them, a bus that names nobody as revoked
has only forgotten.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tidegate.bus.documents import ACCESS, IDENTITY_KEYS, REVOCATIONS, REVOKED, Document
from tidegate.gateway.identity.judging import Identities
from tidegate.model.credentials import Keys
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.registration import Revocation

# What a gateway watches; ``REVOKED`` it reads as need be.
WATCHED: tuple[Document[Any], ...] = (IDENTITY_KEYS, ACCESS, REVOCATIONS)

AT_ONCE = 32  # shards that are asked for at a time

# Reads a document at once: ``Watcher.get``.
Read = Callable[[Document[Any], str], Awaitable[Any]]
# Whose connections have to be judged again; None means everybody's.
JudgeAgain = Callable[[set[str] | None], None]


class Following:
    """``changed`` is told every change of a watched document; ``catch_up`` is awaited behind it, and once a second."""

    def __init__(self, identities: Identities, read: Read, judge_again: JudgeAgain) -> None:
        self._identities, self._read, self._judge_again = identities, read, judge_again
        self._wanted: Mapping[str, int] | None = None  # None until the bus has answered
        self._known: dict[str, int] = {}
        self._keys: Keys | None = None
        self._bus_has_keys: bool | None = None  # readable or not; None until the bus has answered
        self._has_read_access = False
        self._was_restored = False  # it may name more shards by now than when it was looked at
        self.knows_revoked = False  # it has been known once who is revoked

    def changed(self, document: Document[Any], value: Any) -> None:
        if document is IDENTITY_KEYS:
            self._keys = value
            self._has_keys(value is not None)
        elif document is ACCESS:
            self._has_read_access = True
            self._identities.access_changed(None if value is None else value.access)
            self._judge_again(None)
        elif document is REVOCATIONS:
            if value is None:  # it has forgotten everything: all is read anew when somebody has restored it
                self._known.clear()
            self._wanted = value or {}
            self._hand_on_keys()

    def damaged(self, error: DamagedDocumentError) -> str:
        """A watched document cannot be read: what it said before counts on. What follows where it said nothing yet."""
        if error.where == IDENTITY_KEYS.key:
            self._has_keys(True)
        elif error.where == ACCESS.key and not self._has_read_access:
            self._identities.access_damaged()
            return "Until it can be read, or is deleted, no client is let in."
        return ""

    def _has_keys(self, has_keys: bool) -> None:
        self._was_restored = self._was_restored or (has_keys and self._bus_has_keys is False)
        self._bus_has_keys = has_keys
        self._hand_on_keys()

    @property
    def is_behind(self) -> bool:
        if self._wanted is None or self._was_restored:
            return True
        return any(self._known.get(shard) != revision for shard, revision in self._wanted.items())

    async def catch_up(self) -> tuple[str, ...]:
        """Read the shards that have changed; sentences about those that cannot be read. Where the bus is away, the next
        call goes on."""
        if self._was_restored:
            await self._read_index()
        stale = [one for one in (self._wanted or {}).items() if self._known.get(one[0]) != one[1]]
        sentences: list[str] = []
        for begin in range(0, len(stale), AT_ONCE):
            found = await asyncio.gather(*(self._read_shard(*one) for one in stale[begin : begin + AT_ONCE]))
            sentences += (sentence for sentence in found if sentence)
        self._hand_on_keys()
        return tuple(sentences)

    async def _read_index(self) -> None:
        before = self._wanted
        with contextlib.suppress(BrokerUnavailableError, DamagedDocumentError):  # the watcher says what is damaged
            found: Mapping[str, int] = await self._read(REVOCATIONS, "") or {}
            if self._wanted is before:  # otherwise the watcher was faster, and its word is the newer one
                self._wanted = found
            self._was_restored = False

    async def _read_shard(self, shard: str, revision: int) -> str:
        try:
            revoked: Mapping[str, Revocation] = await self._read(REVOKED, shard) or {}
        except BrokerUnavailableError:
            return ""
        except DamagedDocumentError as error:
            self._known[shard] = revision
            is_unknown = self._identities.revoked_damaged(shard)
            return f"{error} Until then nobody whose name is in it is let in." if is_unknown else str(error)
        self._judge_again(self._identities.revoked_changed(shard, revoked))
        self._known[shard] = revision
        return ""

    def _hand_on_keys(self) -> None:
        """Not before the revoked names are known: whoever comes first could be one of them."""
        self.knows_revoked = self.knows_revoked or (bool(self._bus_has_keys) and not self.is_behind)
        if self._keys is not None and not self.is_behind:
            keys, self._keys = self._keys, None
            self._identities.keys_changed(keys)
            self._judge_again(None)
