"""Where each client is and was: on which process, at which broker, with how many credits left.

So a client comes back to the broker that knows its session, one that connects anew ends its old connection wherever
that is, and nobody gets new credits by connecting again. Looked at when a client comes and goes, never per message.

A table in sets of up to 16 entries; a client's digest says which set is its own. Where that is full the client that
was not seen for the longest time is forgotten, of those that are not connected if there are any. The digest is keyed
with a secret of the gateway, so that nobody can choose identifiers that push others out.

An entry without its key counts as empty. It is written without the key, which comes last: a process that dies in
between leaves an empty entry, not a wrong one.
"""

import hashlib
import math
import struct
from collections.abc import Callable, Container

import msgspec

from tidegate.gateway.shared import layout
from tidegate.gateway.shared.locks import ByteLock

DIGEST_BYTES = 16
# Credentials, process, broker, credits, turns, when these were counted, when it was seen last; behind the key.
_FIELDS = struct.Struct("<16sq8sdddd")
_NEVER_COUNTED = (math.nan, 0.0, 0.0)
_NO_KEY = bytes(DIGEST_BYTES)
_BROKER_BYTES = 8
assert DIGEST_BYTES + _FIELDS.size <= layout.ENTRY_BYTES


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a client. ``process`` is 0 while it is nowhere; times are of the monotonic clock."""

    process: int
    # ``brokers.key_of`` its name; zeros where no broker has accepted it. Who comes by HTTP has a rate in its place.
    broker: bytes
    credentials: bytes  # a digest
    # Credits, turns and when these were counted, as ``control.limiting.credits`` left them; None: it has never left.
    credits: tuple[float, float, float] | None
    seen_at_s: float


NOBODY = Known(process=0, broker=bytes(_BROKER_BYTES), credentials=_NO_KEY, credits=None, seen_at_s=0.0)


class Directory:
    def __init__(
        self,
        table: memoryview,
        *,
        ways: int,
        secret: bytes,
        lock: Callable[[int], ByteLock],
        living: Callable[[], Container[int]],
    ) -> None:
        self._table = table
        self._ways = ways
        self._sets = len(table) // (ways * layout.ENTRY_BYTES)
        self._secret = secret
        self._living = living  # the processes there are
        self._locks = [lock(number) for number in range(min(self._sets, layout.DIRECTORY_LOCKS))]

    def digest(self, client_id: str) -> bytes:
        """What stands for a client here. Clients without an identifier have none and are never entered."""
        return hashlib.blake2b(client_id.encode(), digest_size=DIGEST_BYTES, key=self._secret).digest()

    def find(self, client: bytes) -> Known | None:
        """Without a lock where nobody writes just now: an entry that reads the same twice was not being written."""
        entries, lock = self._set_of(client)
        table = self._table
        set_bytes = slice(entries.start, entries.stop)
        read = bytes(table[set_bytes])
        if bytes(table[set_bytes]) == read:
            at = _place_in(read, client)
            return None if at is None else _known(read, at)
        with lock:
            at = self._place(entries, client)
            return None if at is None else self._read(at)

    def arrive(self, client: bytes, *, process: int, broker: bytes, credentials: bytes, now_s: float) -> None:
        """A broker accepted the client on this process."""
        entries, lock = self._set_of(client)
        with lock:
            at = self._place(entries, client)
            before = None if at is None else self._read(at)
            self._write(
                self._oldest(entries) if at is None else at,
                client,
                Known(
                    process=process,
                    broker=broker,
                    credentials=credentials,
                    credits=before.credits if before else None,
                    seen_at_s=now_s,
                ),
            )

    def leave(
        self, client: bytes, *, process: int, credits_left: tuple[float, float, float] | None, now_s: float
    ) -> None:
        """The client's connection on this process ended. Where it is on another by now, it stays there."""
        entries, lock = self._set_of(client)
        with lock:
            at = self._place(entries, client)
            if at is None:
                return
            before = self._read(at)
            if before.process in (process, 0):
                changed = {"process": 0, "credits": credits_left, "seen_at_s": now_s}
                self._write(at, client, msgspec.structs.replace(before, **changed))

    def settle(self, client: bytes, change: Callable[[Known | None], Known | None]) -> Known | None:
        """Change what is known of a client in one go: ``change`` says what shall be, or None where nothing changes. It
        waits for nothing and takes no other lock."""
        entries, lock = self._set_of(client)
        with lock:
            at = self._place(entries, client)
            before = None if at is None else self._read(at)
            after = change(before)
            if after is not None:
                self._write(self._oldest(entries) if at is None else at, client, after)
            return before if after is None else after

    def claim(self, client: bytes, *, process: int, since_s: float) -> bool:
        """Whether nobody has seen the client since then. Whoever meets it from now on has to ask this process first."""
        entries, lock = self._set_of(client)
        with lock:
            at = self._place(entries, client)
            before = None if at is None else self._read(at)
            if before is None or at is None:
                return True
            if before.process != 0 or before.seen_at_s > since_s:
                return False
            self._write(at, client, msgspec.structs.replace(before, process=process))
            return True

    def release(self, client: bytes, *, process: int) -> None:
        """What was claimed is anybody's again."""
        entries, lock = self._set_of(client)
        with lock:
            at = self._place(entries, client)
            before = None if at is None else self._read(at)
            if before is not None and at is not None and before.process == process:
                self._write(at, client, msgspec.structs.replace(before, process=0))

    def _set_of(self, client: bytes) -> tuple[range, ByteLock]:
        number = int.from_bytes(client[:8], "little") % self._sets
        size = self._ways * layout.ENTRY_BYTES
        return range(number * size, (number + 1) * size, layout.ENTRY_BYTES), self._locks[number % len(self._locks)]

    def _place(self, entries: range, client: bytes) -> int | None:
        return next((at for at in entries if self._table[at : at + DIGEST_BYTES] == client), None)

    def _oldest(self, entries: range) -> int:
        """An empty entry, else the one to forget."""
        living = self._living()

        def rank(at: int) -> tuple[bool, bool, float]:
            known = self._read(at)
            return self._table[at : at + DIGEST_BYTES] != _NO_KEY, known.process in living, known.seen_at_s

        return min(entries, key=rank)

    def _read(self, at: int) -> Known:
        return _known(self._table, at)

    def _write(self, at: int, client: bytes, known: Known) -> None:
        self._table[at : at + DIGEST_BYTES] = _NO_KEY
        _FIELDS.pack_into(
            self._table,
            at + DIGEST_BYTES,
            known.credentials,
            known.process,
            known.broker,
            *(known.credits or _NEVER_COUNTED),
            known.seen_at_s,
        )
        self._table[at : at + DIGEST_BYTES] = client


def _place_in(entries: bytes, client: bytes) -> int | None:
    """Where a client's entry is in a copy of its set."""
    at = entries.find(client)
    while at >= 0 and at % layout.ENTRY_BYTES:  # the same bytes may stand in another field
        at = entries.find(client, at + 1)
    return at if at >= 0 else None


def _known(table: memoryview | bytes, at: int) -> Known:
    credentials, process, broker, *left, seen_s = _FIELDS.unpack_from(table, at + DIGEST_BYTES)
    return Known(
        process=process,
        broker=broker,
        credentials=credentials,
        credits=None if math.isnan(left[0]) else (left[0], left[1], left[2]),
        seen_at_s=seen_s,
    )
