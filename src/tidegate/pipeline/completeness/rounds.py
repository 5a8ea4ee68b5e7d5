"""One holder's check, from taking the lease to losing it: journal and tables in, what is missing out.

A step that fails is tried again; what it had done until then stays done, because each part of it may be repeated: rows
that are accounted for twice change nothing, and a report is read once its number is the next.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tidegate.brokers.port import SlicedLog
from tidegate.bus.journals import Ends, Record
from tidegate.model.ledger import CompletenessState, Hole, LedgerReport
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.completeness.book import Book
from tidegate.pipeline.completeness.last_seen import search
from tidegate.pipeline.completeness.marks import Settling
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Run
from tidegate.pipeline.completeness.saving import Saved, load, save
from tidegate.pipeline.completeness.sentences import ALARM_S, alarms_of
from tidegate.pipeline.completeness.stored import NewRows

SAVE_S = 30.0
FORGET_S = 60.0
REPORTS_MAX = 2_000  # read in one step
REPORTS_AT_ONCE = 50  # they may be large
LOOK_UP_MAX = 2_000
HOLES_TOLD = 100
# Written down, and below what the bus takes even with the longest name: the newest one is always told.
HOLES_BYTES_MAX = 512 * 1024
FAILS_S_MAX = 60.0
# What could not be checked for so long is given up: the journal forgets it, and so may the tables.
UNCHECKED_S_MAX = 20 * 3600.0


class Journal(Protocol):
    def create(self) -> object: ...

    def ends(self) -> Ends: ...

    def read(self, sequences: Sequence[int]) -> list[Record[LedgerReport]]: ...


class Readings(Protocol):
    def since(self, positions: dict[int, int]) -> NewRows: ...

    def look_up(self, wanted: Sequence[Open]) -> Iterable[Run]: ...

    def look_up_rejected(self, wanted: Sequence[Open]) -> Iterable[Run]: ...

    def damage(self) -> tuple[str, ...]: ...


class Sources(NamedTuple):
    journal: Journal
    log: SlicedLog
    tables: Readings
    directory: Path  # where the state is kept


class Round:
    def __init__(self, sources: Sources, now_s: float) -> None:
        saved = load(sources.directory)
        self._sources = sources
        self._book = Book(sources.log.slice_of, saved.pages)
        self._settling = Settling(saved.settled)
        self._journal = saved.journal
        self._report = saved.report
        self._positions = saved.positions
        self._reports_lost = saved.reports_lost
        self._behind = 0
        self._waits_for: str | None = None
        self._fails_since_s: float | None = None
        self._lost_s: float | None = None  # when reports were lost last
        self._damage: tuple[str, ...] = ()
        self._save_s = now_s + SAVE_S
        self._forget_s = now_s

    def step(self, now_s: float) -> None:
        """Whatever goes wrong is said and tried again: a check that ended would be missed by nobody for long."""
        lost = self._reports_lost
        try:
            self._waits_for = None
            self._damage = ()
            self._read_tables()
            bus_now_s = self._read_journal()
            self._measure()
            self._look_up(now_s)
            self._damage = self._sources.tables.damage()
            if abs(now_s - self._forget_s) >= FORGET_S:
                self._forget_s = now_s
                self._book.forget(bus_now_s, UNCHECKED_S_MAX)
            if not self._save_s > now_s >= self._save_s - SAVE_S:
                self._save_s = now_s + SAVE_S
                self.save()
            self._fails_since_s = None
        except Exception as error:
            self._waits_for = " ".join(str(error).split()) or type(error).__name__
            if self._fails_since_s is None or self._fails_since_s > now_s:
                self._fails_since_s = now_s
        if self._reports_lost > lost:
            self._lost_s = now_s

    def _read_tables(self) -> None:
        new = self._sources.tables.since(self._positions)
        self._book.account(new.stored, "stored")
        self._book.account(new.rejected, "rejected")
        self._positions = new.positions
        self._settling.read(new.positions)

    def _read_journal(self) -> float:
        """What time the bus says it is."""
        journal = self._sources.journal
        ends = journal.ends()
        if not ends.created:
            journal.create()
            ends = journal.ends()
        if ends.created != self._journal:
            self._begin_journal(ends)
        first = self._report + 1
        if first < ends.first:
            self._reports_lost += ends.first - first
            first = ends.first
            self._report = first - 1
        last = min(ends.last, first + REPORTS_MAX - 1)
        for start in range(first, last + 1, REPORTS_AT_ONCE):
            asked = range(start, min(last + 1, start + REPORTS_AT_ONCE))
            self._take(journal.read(asked), asked)
        self._behind = ends.last - self._report
        return ends.now_s

    def _take(self, records: Sequence[Record[LedgerReport]], asked: range) -> None:
        """Records that cannot be read, or went between asking for their number and for them, are lost."""
        for record in records:
            if record.value is not None:
                self._reports_lost += record.sequence - self._report - 1
                self._report = record.sequence  # before the book has it: what it cannot take is not read again
                try:
                    self._book.acknowledge(record.value, record.sequence, record.at_s)
                except Exception:
                    self._reports_lost += 1
                    raise
        self._reports_lost += asked[-1] - self._report
        self._report = asked[-1]

    def _begin_journal(self, ends: Ends) -> None:
        """The first one, or that of a bus that was lost: its reports have numbers of their own."""
        self._journal = ends.created
        self._report = ends.first - 1
        self._settling = Settling()
        self._book.renumber(ends.first)

    def _measure(self) -> None:
        """After the journal was read, never before: see ``marks``."""
        committed = {slice_: sequence_of(place) for slice_, place in self._positions.items()}
        backlog = self._sources.log.backlog(committed)
        if backlog.alarms:
            self._waits_for = " ".join(backlog.alarms)
            return
        upstream = backlog.upstream_waiting
        places = {
            one.slice: position(incarnation_of(self._positions[one.slice]), one.last_sequence + upstream)
            for one in backlog.slices
            # A log that is shorter than what was read is none that the tables have taken up yet.
            if one.slice in committed and one.last_sequence >= committed[one.slice]
        }
        self._settling.measured(self._report, places)
        self._settling.read(self._positions)

    def _look_up(self, now_s: float) -> None:
        due = self._book.due(self._settling.settled, now_s, LOOK_UP_MAX)
        if not due:
            return
        self._book.account(self._sources.tables.look_up(due), "stored")
        self._book.account(self._sources.tables.look_up_rejected(due), "rejected")
        named = self._book.missed(due, now_s)
        if named:
            search(self._sources.log, named)

    def save(self) -> None:
        saved = Saved(
            journal=self._journal,
            report=self._report,
            positions=self._positions,
            settled=self._settling.settled,
            reports_lost=self._reports_lost,
            pages=self._book.pages(),
        )
        save(self._sources.directory, saved)

    def said(self, checker: str, now_s: float, *, left: bool = False) -> CompletenessState:
        hours, holes = self._book.hours(), self._book.holes()
        told = newest_of(holes)
        alarms = [*alarms_of(hours, holes, now_s), *self._damage]
        if self._lost_s is not None and now_s - self._lost_s < ALARM_S:
            alarms.append(
                f"{self._reports_lost:,} reports of gateways were gone or damaged before they were compared with the "
                "tables, the last of them within the hour: nobody can say whether what they told is complete."
            )
        if self._fails_since_s is not None and now_s - self._fails_since_s >= FAILS_S_MAX:
            alarms.append(f"What gateways acknowledged cannot be compared with the tables: {self._waits_for}")
        return CompletenessState(
            checker=checker,
            at_s=now_s,
            hours=hours,
            holes=tuple(told),
            holes_more=len(holes) - len(told),
            reports=self._report,
            reports_behind=self._behind,
            settled=self._book.settled(self._report),
            reports_lost=self._reports_lost,
            withdrawn=self._book.withdrawn,
            oldest_s=self._book.oldest_s(),
            waits_for=self._waits_for,
            left=left,
            alarms=tuple(alarms),
        )


def newest_of(holes: Sequence[Hole]) -> list[Hole]:
    """As many as a document may tell, in the same order."""
    told: list[Hole] = []
    size = 0
    for hole in reversed(holes[-HOLES_TOLD:]):
        size += len(msgspec.json.encode(hole))
        if told and size > HOLES_BYTES_MAX:
            break
        told.append(hole)
    return told[::-1]
