"""Who is revoked, as the control bus has it: shard by shard, found by name, and due at its moment."""

import heapq
from collections.abc import Callable, Mapping

from tidegate.model.registration import Revocation, shard_of

# Names that one look goes through, and of them those that it hands out: a whole fleet may be due at one moment, and
# traffic waits meanwhile.
GONE_THROUGH_MAX, DUE_MAX = 100_000, 2_000


class Revocations:
    """Kept once, by shard and name. What comes into force later waits by its moment; the moments are in a heap."""

    def __init__(self) -> None:
        self._shards: dict[str, dict[str, Revocation]] = {}
        self._read: set[str] = set()  # shards, be they empty
        self._unknown: set[str] = set()  # shards that were damaged whenever they were read
        self._moments: list[float] = []
        self._waiting: dict[float, list[str]] = {}

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
                self._wait(now[name].from_s, name)
        return names | (before.keys() - now.keys())

    def _wait(self, from_s: float, name: str) -> None:
        waiting = self._waiting.get(from_s)
        if waiting is None:
            waiting = self._waiting[from_s] = []
            heapq.heappush(self._moments, from_s)
        waiting.append(name)

    def due(self, now_s: float, is_here: Callable[[str], bool]) -> set[str]:
        """Names of those who are here whose revocations have come into force. What is too much for one look waits for
        the next; who connects meanwhile is judged by the moment itself."""
        names: set[str] = set()
        left = GONE_THROUGH_MAX
        while left and len(names) < DUE_MAX and self._moments and self._moments[0] <= now_s:
            waiting = self._waiting[self._moments[0]]
            while waiting and left and len(names) < DUE_MAX:
                left -= 1
                name = waiting.pop()
                if is_here(name):
                    names.add(name)
            if not waiting:
                del self._waiting[heapq.heappop(self._moments)]
        return names
