"""Who is revoked, as the control bus has it: shard by shard, found by name, and due at its moment."""

import heapq
from collections.abc import Mapping

from tidegate.model.registration import Revocation, shard_of


class Revocations:
    """Kept once, by shard and name. What comes into force later waits in a heap."""

    def __init__(self) -> None:
        self._shards: dict[str, dict[str, Revocation]] = {}
        self._read: set[str] = set()  # shards, be they empty
        self._unknown: set[str] = set()  # shards that were damaged whenever they were read
        self._due: list[tuple[float, str]] = []

    def of(self, name: str) -> Revocation | None:
        shard = self._shards.get(shard_of(name)) if self._shards else None
        return None if shard is None else shard.get(name)

    def is_unknown(self, name: str) -> bool:
        """Whether nobody can tell if that name is revoked."""
        return bool(self._unknown) and shard_of(name) in self._unknown

    def damaged(self, shard: str) -> bool:
        """A shard cannot be read: what it said before counts on. True where nothing of it was ever known."""
        if shard not in self._read:
            self._unknown.add(shard)
        return shard in self._unknown

    def changed(self, shard: str, now: Mapping[str, Revocation], now_s: float) -> set[str]:
        """The names about which a shard says something else than before."""
        self._read.add(shard)
        self._unknown.discard(shard)
        before = self._shards.pop(shard, {})
        if now:
            same: dict[Revocation, Revocation] = {}  # a whole fleet that was rotated at once has few different ones
            self._shards[shard] = {name: same.setdefault(one, one) for name, one in now.items()}
        names = {name for name, revocation in now.items() if before.get(name) != revocation}
        for name in names:
            if now[name].from_s > now_s:
                heapq.heappush(self._due, (now[name].from_s, name))
        return names | (before.keys() - now.keys())

    def due(self, now_s: float) -> set[str]:
        """The names whose revocations have come into force since this was asked last."""
        names = set()
        while self._due and self._due[0][0] <= now_s:
            names.add(heapq.heappop(self._due)[1])
        return names
