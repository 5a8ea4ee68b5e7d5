"""What a process noted goes to the ledger's journal on the control bus, every ten seconds, in parts of bounded size.

Traffic never waits for this. While the bus is away reports are kept, as many as there is room for; what finds no room
counts as unwatched, and so does what a process that is killed had not reported, and what the bus would never take.
"""

import asyncio
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from tidegate.bus.documents import LEDGER, Journal
from tidegate.gateway.connection.noting import Noted, Track
from tidegate.gateway.shared.counting import Counters
from tidegate.model.errors import BrokerUnavailableError, TooLargeError
from tidegate.model.ledger import LedgerReport, SequenceRun

REPORT_S = 10.0
# Of one part, as it is written down: below what the bus takes as one message (1 MiB) even where a single device's name
# is longer, which is at most 64 KiB of control characters and six times that when it is written.
PART_RUNS_MAX = 2_000
PART_BYTES_MAX = 256 * 1024
KEPT_RUNS_MAX = 400_000
KEPT_BYTES_MAX = 64 * 1024**2  # in memory
_RUN_BYTES_MAX = 64  # written down: three numbers of 19 digits
_RUN_KEPT_BYTES = 160
LAST_S_MAX = 0.5

T = TypeVar("T")
Devices = tuple[tuple[str, tuple[SequenceRun, ...]], ...]


class Appends(Protocol):
    """The part of a watcher that this needs."""

    async def create(self, journal: Journal[Any]) -> None: ...

    async def append(self, journal: Journal[T], record: T, name: str, identity: str) -> None: ...


class Part(NamedTuple):
    """``noted`` is how many acknowledged readings are told for with it, ``runs`` and ``size`` its room in memory."""

    identity: str
    began_s: float
    ended_s: float
    noted: int
    nameless: int
    unwatched: int
    runs: int
    size: int
    devices: Devices


class LedgerReports:
    """``run`` for ever, and ``finish`` at the end. ``reported`` and ``unwatched`` only grow."""

    def __init__(
        self,
        noted: Noted,
        bus: Appends,
        *,
        gateway: str,
        process: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reported = 0  # of what was noted: in the journal, or given up and counted as unwatched
        self.unwatched = 0  # beside what ``noted`` itself could not note
        self._noted = noted
        self._bus = bus
        self._gateway = gateway
        self._process = process
        self._clock = clock
        # Two processes of one number, one after the other, are told apart.
        self._run = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[Part] = deque()
        self._kept_runs = self._kept_bytes = 0
        self._taken = (0, 0, 0)  # noted, nameless and unwatched, as of the last report
        self._untold = (0, 0)  # nameless and unwatched of parts that were given up
        self._taken_s = clock()
        self._exists = False

    def tell(self, counters: Counters) -> None:
        counters.tell_reported(self.reported, self._noted.unwatched + self.unwatched, self._unreported_s())

    def _unreported_s(self) -> int:
        """Whoever calls this need not trust that ``run`` still runs."""
        since_s = self._kept[0].began_s if self._kept else self._taken_s
        return int(self._clock() - since_s) if self._noted.noted > self.reported else 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            await self.report()

    async def finish(self) -> None:
        """The last report, if the bus takes it at once."""
        try:
            async with asyncio.timeout(LAST_S_MAX):
                await self.report()
        except TimeoutError:
            return

    async def report(self) -> None:
        self._collect()
        try:
            if self._kept and not self._exists:
                await self._bus.create(LEDGER)
                self._exists = True
            while self._kept:
                part = self._kept[0]
                try:
                    await self._bus.append(LEDGER, self._said(part), self._gateway, part.identity)
                except TooLargeError:
                    self._give_up()  # else all that comes behind it would wait for ever
                else:
                    self._let_go()
        except BrokerUnavailableError:
            self._exists = False  # a bus that comes back may have lost it

    def _said(self, part: Part) -> LedgerReport:
        now_s = self._clock()
        return LedgerReport(
            gateway=self._gateway,
            process=self._process,
            oldest_s=round(now_s - part.began_s, 3),
            newest_s=round(now_s - part.ended_s, 3),
            nameless=part.nameless,
            unwatched=part.unwatched,
            devices=part.devices,
        )

    def _collect(self) -> None:
        noted, now_s = self._noted, self._clock()
        tracks, unnamed = _named(noted.take())
        counts = (noted.noted, noted.nameless, noted.unwatched)
        repeats, nameless, unwatched = (now - before for now, before in zip(counts, self._taken, strict=True))
        nameless, unwatched = nameless + self._untold[0], unwatched + self._untold[1] + unnamed
        self.unwatched += unnamed
        began_s, self._taken_s, self._taken, self._untold = self._taken_s, now_s, counts, (0, 0)
        parts = parts_of(tracks) or ([()] if nameless or unwatched else [])
        repeats -= sum(map(_readings, parts))
        for devices in parts:
            self._number += 1
            identity = f"{self._gateway}-{self._process}-{self._run}-{self._number}"
            runs = 1 + sum(len(found) for _, found in devices)
            size = _RUN_KEPT_BYTES * runs + sum(sys.getsizeof(device) for device, _ in devices)
            told = _readings(devices) + repeats
            self._keep(Part(identity, began_s, now_s, told, nameless, unwatched, runs, size, devices))
            repeats = nameless = unwatched = 0

    def _keep(self, part: Part) -> None:
        """The oldest give way: what comes now may still be checked in time."""
        self._kept.append(part)
        self._kept_runs += part.runs
        self._kept_bytes += part.size
        while self._kept_runs > KEPT_RUNS_MAX or self._kept_bytes > KEPT_BYTES_MAX:
            self._give_up()

    def _give_up(self) -> None:
        """The oldest part: the next report says how much that was."""
        lost = self._let_go()
        given_up = _readings(lost.devices)
        self.unwatched += given_up
        self._untold = (self._untold[0] + lost.nameless, self._untold[1] + lost.unwatched + given_up)

    def _let_go(self) -> Part:
        part = self._kept.popleft()
        self._kept_runs -= part.runs
        self._kept_bytes -= part.size
        self.reported += part.noted
        return part


def _named(tracks: Sequence[Track]) -> tuple[list[Track], int]:
    """Those whose device has a name that can be written down, and how many readings the others have."""
    named, readings = [], 0
    for track in tracks:
        try:
            track.device.decode()
        except UnicodeDecodeError:
            readings += sum(high - low + 1 for _, low, high in track.all_runs())
        else:
            named.append(track)
    return named, readings


def parts_of(tracks: Sequence[Track]) -> list[Devices]:
    """The devices and their runs, in parts of bounded size."""
    parts: list[Devices] = []
    part: list[tuple[str, tuple[SequenceRun, ...]]] = []
    runs, size = 0, 0
    for track in tracks:
        device, every = track.device.decode(), track.all_runs()
        name_bytes = len(msgspec.json.encode(device))
        for start in range(0, len(every), PART_RUNS_MAX):
            some = tuple(every[start : start + PART_RUNS_MAX])
            cost = name_bytes + _RUN_BYTES_MAX * len(some)
            if part and (runs + len(some) > PART_RUNS_MAX or size + cost > PART_BYTES_MAX):
                parts.append(tuple(part))
                part, runs, size = [], 0, 0
            part.append((device, some))
            runs, size = runs + len(some), size + cost
    return [*parts, tuple(part)] if part else parts


def _readings(devices: Devices) -> int:
    return sum(high - low + 1 for _, runs in devices for _, low, high in runs)
