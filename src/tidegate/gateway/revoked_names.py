"""Who is revoked, followed on the control bus: only what has changed is read, and read until it could be."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.registration import Revocation

AT_ONCE = 32
AGAIN_S = 0.5

Revoked = Mapping[str, Revocation]


class RevokedNames:
    """``get`` reads one shard, ``changed`` is handed what it says. ``are_known`` once everything was read: before that
    nobody can tell who is revoked, so nobody may be let in."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[Revoked | None]],
        changed: Callable[[str, Revoked], None],
        damaged: Callable[[DamagedDocumentError], None],
    ) -> None:
        self.are_known = False
        self._get, self._changed, self._damaged = get, changed, damaged
        self._index: Mapping[str, int] = {}
        self._read: dict[str, int] = {}
        self._woken = asyncio.Event()

    def follow(self, index: Mapping[str, int] | None) -> None:
        """The revision of each shard, as the bus has it. A bus that has lost everything takes nothing back."""
        self._index = index or {}
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self.read()
            except BrokerUnavailableError:
                self._woken.set()
                await asyncio.sleep(AGAIN_S)

    async def read(self) -> None:
        """Everything that is not known yet."""
        stale = [(shard, revision) for shard, revision in self._index.items() if self._read.get(shard) != revision]
        for begin in range(0, len(stale), AT_ONCE):
            await asyncio.gather(*(self._read_shard(*one) for one in stale[begin : begin + AT_ONCE]))
        self.are_known = True

    async def _read_shard(self, shard: str, revision: int) -> None:
        try:
            self._changed(shard, await self._get(shard) or {})
        except DamagedDocumentError as error:
            self._damaged(error)  # what it said before stays
        self._read[shard] = revision
