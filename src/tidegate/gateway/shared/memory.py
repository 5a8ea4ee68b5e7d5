"""The memory itself: an anonymous file that every process of a gateway maps.

The supervisor creates it and hands the file's number to the processes it starts, which open it by that number. A
gateway that is one process only (and a test) creates one for itself.
"""

import fcntl
import mmap
import os
import secrets
import struct

from tidegate.control.limiting.token_bucket import FULL, TokenBucket
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.brokers import BrokerLoads
from tidegate.gateway.shared.directory import Directory
from tidegate.gateway.shared.locks import ByteLock, MemoryFile
from tidegate.gateway.shared.row import Row
from tidegate.model.errors import TidegateError

_SECRET_BYTES = 16
# Layout, rows without that of those who are gone, buckets, sets, ways, and the secret of the directory's digests.
_HEADER = struct.Struct(f"<QQQQQ{_SECRET_BYTES}s")


class Shared:
    """``rows`` has one row per process; ``gone`` is the row of those that are not there any more.

    ``unattended`` says which listener sets no process keeps: the supervisor writes it, the processes read it.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._file = MemoryFile(fd)
        self._map = mmap.mmap(fd, 0)
        found, processes, buckets, sets, ways, secret = _HEADER.unpack_from(self._map)
        if found != layout.LAYOUT:
            raise TidegateError("The processes of this gateway are of different versions: stop it and start it anew.")
        self._memory = memoryview(self._map)
        sizes = _sizes(processes, buckets, sets * ways)
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        _, rows, self._brokers, self._buckets, clients = (
            self._memory[start : start + size] for start, size in zip(starts, sizes, strict=True)
        )
        every = [Row(rows[at : at + layout.ROW_BYTES]) for at in range(0, len(rows), layout.ROW_BYTES)]
        self.rows, self.gone = every[:-1], every[-1]
        sets_end = layout.LISTENER_SETS_AT + layout.LISTENER_SETS_MAX * layout.CELL_BYTES
        self.unattended = self._memory[layout.LISTENER_SETS_AT : sets_end].cast("q")
        self.directory = Directory(
            clients,
            ways=ways,
            secret=secret,
            lock=lambda number: self._lock(layout.DIRECTORY_LOCK + number),
            living=lambda: {row.cells[layout.PROCESS] for row in self.rows} - {0},
        )

    @classmethod
    def create(cls, *, processes: int = 1, buckets: int = 0, clients_max: int = 1_000) -> "Shared":
        ways = min(layout.WAYS_MAX, clients_max)
        sets = -(-clients_max // ways)
        fd = os.memfd_create("tidegate-gateway", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(fd, sum(_sizes(processes, buckets, sets * ways)))
        # A file that shrank would end every process that looks at it.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        header = _HEADER.pack(layout.LAYOUT, processes, buckets, sets, ways, secrets.token_bytes(_SECRET_BYTES))
        os.pwrite(fd, header, 0)
        shared = cls(fd)
        for number in range(buckets):
            shared._cell(number)[0] = FULL
        return shared

    @classmethod
    def from_fd(cls, fd: int) -> "Shared":
        return cls(fd)

    @classmethod
    def alone(cls, *, buckets: int = 0, clients_max: int = 1_000) -> "Shared":
        """For a gateway that is one process: its row is taken."""
        shared = cls.create(buckets=buckets, clients_max=clients_max)
        shared.begin(0, process=1)
        return shared

    def begin(self, slot: int, *, process: int) -> None:
        """A process is about to use this row. Its number is like no other's before: so nobody is taken for another."""
        self.rows[slot].cells[layout.PROCESS] = process

    def brokers(self, slot: int = 0) -> BrokerLoads:
        """The connections to brokers, as the process in this slot counts them."""
        return BrokerLoads(self._brokers, self._lock(layout.BROKERS_LOCK), self.rows, self.rows[slot])

    def bucket(self, number: int, *, rate_per_s: float, burst: float, name: str = "") -> TokenBucket:
        """A bucket that all processes draw from, as this one sees it."""
        return TokenBucket(
            self._cell(number),
            self._lock(layout.BUCKET_LOCK + number),
            rate_per_s=rate_per_s,
            burst=burst,
            processes=len(self.rows),
            name=name,
        )

    def slot_of(self, process: int) -> int | None:
        """Where a process is, as the directory names it; None: it is gone."""
        if process:
            for slot, row in enumerate(self.rows):
                if row.cells[layout.PROCESS] == process:
                    return slot
        return None

    def fold(self, slot: int) -> None:
        """A process is gone: what it counted stays, what it had does not, and its row is free."""
        row, gone = self.rows[slot].cells, self.gone.cells
        for place in range(layout.COUNTERS):
            gone[place] += row[place]
        self.rows[slot].clear()

    def _cell(self, number: int) -> "memoryview[float]":
        at = number * layout.BUCKET_BYTES
        return self._buckets[at : at + layout.CELL_BYTES].cast("d")

    def _lock(self, place: int) -> ByteLock:
        return ByteLock(self._file, place)


def _sizes(processes: int, buckets: int, entries: int) -> tuple[int, int, int, int, int]:
    """Header, rows, brokers' names, buckets, directory."""
    parts = (
        (processes + 1) * layout.ROW_BYTES,
        layout.BROKERS_MAX * layout.BROKER_BYTES,
        buckets * layout.BUCKET_BYTES,
        entries * layout.ENTRY_BYTES,
    )
    return (layout.PAGE_BYTES, *parts)
