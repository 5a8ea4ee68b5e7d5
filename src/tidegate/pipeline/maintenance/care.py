"""All that maintenance does to one table, step by step."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from deltalake.transaction import AddAction

from tidegate.model.errors import FencedError, TidegateError, UserError
from tidegate.model.tables import MaintenanceRun, TableHealth
from tidegate.pipeline.maintenance import log, vacuum
from tidegate.pipeline.maintenance.keys import KEYS
from tidegate.pipeline.maintenance.merging import MEMORY_MAX, Merging, merge
from tidegate.pipeline.maintenance.pacing import Pace, Stopped
from tidegate.pipeline.maintenance.planning import DataFile, Limits, Merge, clock_problem, expired, next_merges
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.tables import checkpoints
from tidegate.pipeline.tables.damage import UNREADABLE, fault_of
from tidegate.pipeline.tables.file_clock import file_clock_s
from tidegate.pipeline.tables.tables import DATE

DAMAGED = "_damaged"  # a directory of the table that no reader and no vacuum looks into
MIB = 1 << 20
RESERVE_BYTES = 512 * MIB  # of the disk: what the brokers keep back as well


class UntrustedClockError(TidegateError):
    """Days are not dropped by a clock that the tables do not bear out."""


@dataclass
class Done:
    """What has been done to a table so far."""

    files_merged: int = 0
    files_written: int = 0
    files_removed: int = 0
    log_entries_removed: int = 0
    dates_dropped: int = 0

    def run(self, table: str, at_s: float, seconds: float, problem: str | None) -> MaintenanceRun:
        return MaintenanceRun(table=table, at_s=at_s, seconds=seconds, problem=problem, **vars(self))


@dataclass
class Care:
    """One table, its settings, and what was done. Every method does its part completely, resting on the way."""

    table: MaintainedTable
    settings: MaintenanceSettings
    pace: Pace
    fsync: bool = False
    done: Done = field(default_factory=Done)
    now: Callable[[], float] = time.time
    since_s: float = field(default_factory=time.time)
    _made: set[str] = field(default_factory=set)
    _left_out: set[str] = field(default_factory=set)  # files whose merge failed
    _failure: TidegateError | None = None  # of the first such merge

    @property
    def today(self) -> date:
        return datetime.fromtimestamp(self.now(), UTC).date()

    @property
    def limits(self) -> Limits:
        settings = self.settings
        return Limits(settings.file_mib_min * MIB, settings.file_mib_max * MIB, settings.merge_files_min)

    def health(self) -> TableHealth:
        files = self.table.files()
        self.table.damage.look({file.path: file.size for file in files})
        dates = {file.date for file in files}
        return TableHealth(
            damaged_files=len(self.table.damage.found),
            active_files=len(files),
            log_entries=self.log_entries(),
            bytes=sum(file.size for file in files),
            rows=sum(file.rows for file in files),
            dates=len(dates),
            oldest_date=str(min(dates)) if dates else None,
        )

    # -- the log

    def log_entries(self) -> int:
        return len(checkpoints.listing(self.table.log).entries)

    def shorten_log(self) -> None:
        """First of all: with a log that is too long everything else is slow."""
        settings = self.settings
        checkpoints.sweep(self.table.log, self.pace.rest)
        checkpoints.catch_up(self.table.log, self.pace.rest)
        found = checkpoints.listing(self.table.log)
        if found.newest - found.checkpoint >= log.CHECKPOINT_EVERY:
            self.table.refresh().create_checkpoint()
            found = checkpoints.listing(self.table.log)
        now_s = file_clock_s(self.table.path)
        self.done.log_entries_removed += log.clean(
            found, now_s, settings.log_retention_s, settings.log_entries_max, self.pace.rest
        )
        log.remove_leftovers(found, now_s)
        self.table.ensure(
            {
                "delta.logRetentionDuration": f"interval {settings.log_retention_s} seconds",
                "delta.deletedFileRetentionDuration": f"interval {settings.vacuum_after_h} hours",
                "delta.appendOnly": "false",
            }
        )
        self.pace.rest()

    # -- files

    def planned(self) -> list[Merge]:
        """Of what was there in the beginning and what has been made of it: new files come all the time."""
        files = [file for file in self.table.files() if file.modified_s <= self.since_s or file.path in self._made]
        whole = [file for file in files if file.path not in self.table.damage and file.path not in self._left_out]
        return next_merges(whole, self.now(), self.today, self.limits)

    def compact(self, until_s: float = math.inf) -> bool:
        """The merges that are next, until then by the monotonic clock; whether there were any.

        One that fails is left out from then on, and what is wrong is raised when nothing else is left to do. It takes
        no time from the others: at least one succeeds, if any can.
        """
        before = self.done.files_merged
        while self.done.files_merged == before:
            merges = self.planned()
            if not merges:
                self.check_merges()
                return False
            for files in merges:
                self._merge(files)
                if self.done.files_merged > before and time.monotonic() > until_s:
                    break
        return True

    def check_merges(self) -> None:
        """Raise what the first merge failed for, if one did."""
        if self._failure is not None:
            raise self._failure

    def _merge(self, files: Merge) -> None:
        try:
            merged, adds = self._written(files)
        except (Stopped, FencedError):
            raise
        except Exception as error:
            if isinstance(error, UNREADABLE) and self.table.damage.examine(file.path for file in files):
                return  # the next plan leaves out what is damaged
            self._leave_out(files, error)
            return
        try:
            self.table.replace(merged, adds, what="compaction")
        except BaseException:
            self._discard([self.table.path / add.path for add in adds])
            raise
        self.done.files_merged += len(merged)
        self.done.files_written += len(adds)
        self._made |= {add.path for add in adds}
        self.pace.rest()

    def _written(self, files: Merge) -> tuple[list[DataFile], list[AddAction]]:
        _check_room(self.table.path, sum(file.size for file in files))
        how = Merging(
            self.table.path,
            self.table.schema,
            KEYS[self.table.name],
            min(self.settings.memory_mib * MIB // 2, MEMORY_MAX),
            self.limits,
            self.fsync,
            self.pace.rest,
        )
        return merge(how, files)

    def _leave_out(self, files: Merge, error: Exception) -> None:
        self._left_out |= {file.path for file in files}
        if self._failure is None and isinstance(error, TidegateError):
            self._failure = error
        elif self._failure is None:
            what = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            self._failure = TidegateError(
                f"{len(files)} files of {files[0].date} could not be merged and are left as they are until the next "
                f"round ({what}): 'tidegate table check --table {self.table.name}' tells whether one is damaged."
            )
            self._failure.__cause__ = error

    def _discard(self, paths: list[Path]) -> None:
        """Of a commit that failed, unless the table has the files after all."""
        active = {file.path for file in self.table.files()}
        for path in paths:
            if str(path.relative_to(self.table.path)) not in active:
                path.unlink(missing_ok=True)

    def damaged(self) -> dict[str, str]:
        """Every active file read whole: what is wrong, by path. However many there are."""
        faults: dict[str, str] = {}
        for file in self.table.files():
            what = fault_of(self.table.path / file.path)
            if what is not None:
                faults[file.path] = what
            self.pace.rest()
        return faults

    def remove_damaged(self, path: str) -> None:
        """Take a file out of the table that nobody can read, and keep what is left of it where no one removes it."""
        file = next((file for file in self.table.files() if file.path == path), None)
        if file is None:
            raise UserError(
                f"The table {self.table.name} has no file {path}: 'tidegate table check' names damaged files."
            )
        if fault_of(self.table.path / path) is None:
            raise UserError(f"The file {path} of the table {self.table.name} can be read: it stays in the table.")
        self.table.replace([file], [], what="damaged file", data_change=True)
        kept = self.table.path / DAMAGED / path
        kept.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            (self.table.path / path).rename(kept)

    # -- days

    def to_drop(self) -> tuple[DataFile, ...]:
        return expired(self.table.files(), self.today, self.settings.days[self.table.name])

    def clock_problem(self) -> str | None:
        """Why this machine's clock is not to be believed, where a day would be dropped by it.

        All tables are looked at: one that nobody wrote to for months is no reason, as long as another one grows.
        """
        days = (path.name.removeprefix(f"{DATE}=") for path in self.table.path.parent.glob(f"*/{DATE}=*"))
        return clock_problem(self.today, _dates(days)) if self.to_drop() else None

    def check_clock(self) -> None:
        """Before ``retain``, unless a person vouches for the clock: raises where the tables do not bear it out."""
        problem = self.clock_problem()
        if problem is not None:
            raise UntrustedClockError(
                f"No day of the table {self.table.name} is dropped, because {problem}: set the clock right, or if it "
                "is right, look at 'tidegate table retain --dry-run' and drop them with 'tidegate table retain "
                "--trust-clock'."
            )

    def retain(self) -> None:
        """Drop the days that are no longer kept; their files stay for as long as a reader may need them."""
        files = self.to_drop()
        if files:
            self.table.replace(files, [], what="retention", data_change=True)
            self.done.dates_dropped += len({file.date for file in files})
            self.pace.rest()

    def vacuum(self) -> None:
        paths = vacuum.removable(self.table, self.settings.vacuum_after_h)
        self.done.files_removed += vacuum.remove(self.table, paths, self.pace.rest)
        vacuum.remove_empty_days(self.table, self.today)
        self.pace.rest()


def _dates(names: Iterable[str]) -> Iterator[date]:
    for name in names:
        with suppress(ValueError):
            yield date.fromisoformat(name)


def _check_room(path: Path, needed: int) -> None:
    """A merge needs the room of its files once more, until they are vacuumed."""
    disk = os.statvfs(path)
    if disk.f_bavail * disk.f_frsize < needed + RESERVE_BYTES:
        raise TidegateError(
            f"The disk of {path} has no room to merge {needed / MIB:.0f} MiB of files: free some space, or let "
            "[maintenance] keep fewer days."
        )
