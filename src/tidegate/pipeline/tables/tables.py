"""The Delta tables and what their own log says about each slice.

Every commit carries, for each slice it covers, how far the slice now is (transaction ``slice-N``) and under which
epoch that was written (``slice-N-epoch``). The two records are position and fence in one: a writer commits only from
exactly the position it started at and only under the epoch it claimed, so a node that lost its slice, however late it
wakes up, can add nothing. The readings' table also records what the message at that position was (``slice-N-stamp``,
``slice-N-digest``): a log that comes back from a failure with another message there is not the log that was read.

Rows are partitioned by the date of their arrival, so that a day can be dropped as a whole.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from tidegate.model.errors import FencedError, TidegateError, UserError
from tidegate.pipeline.tables import checkpoints
from tidegate.pipeline.tables.damage import SetAside, open_file
from tidegate.pipeline.transforms.means import MEANS
from tidegate.pipeline.transforms.parsing import READINGS, REJECTED

SCHEMAS: dict[str, pa.Schema] = {"readings": READINGS, "means": MEANS, "rejected": REJECTED}
DATE = "date"
_PARTITION = pa.field(DATE, pa.date32(), nullable=False)
# A commit replays the log since the last checkpoint, so frequent checkpoints keep commits short. The log and the files
# that were replaced are kept for as long as a slow reader may need, not for a month: every commit lists the log.
CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 10 minutes",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
_COMMIT_S_MAX = 120.0


class Position(NamedTuple):
    """Where a slice stands in a table. Epoch 0, offset 0: nothing of it has been written."""

    epoch: int
    offset: int


class Step(NamedTuple):
    """A slice's way through one commit: everything after ``after`` up to and including ``to``."""

    epoch: int
    after: int
    to: int


class Mark(NamedTuple):
    """What tells one message of a log from another: when it was stored (microseconds), and a digest of it."""

    stamp_us: int
    digest: int


# Where a slice goes on, given where the table has it and what the message there was.
Judge = Callable[[int, int, Mark | None], int]


class LogTable:
    """One Delta table whose commits advance slices. One handle, one thread."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.path = directory / name
        self._table: DeltaTable | None = None
        self.damage = SetAside(name, self.path, self._active)

    def _active(self) -> set[str]:
        return set(pa.table(self.refresh().get_add_actions())["path"].to_pylist())

    @property
    def handle(self) -> DeltaTable:
        if self._table is None:
            self._table = self._open()
        return self._table

    def _open(self) -> DeltaTable:
        checkpoints.catch_up(self.path / "_delta_log", behind_max=checkpoints.BEHIND_MAX)
        try:
            return DeltaTable(str(self.path))
        except TableNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True)
            with suppress(DeltaError):  # another node may be first; if it is not that, opening says so
                schema = SCHEMAS[self.name].append(_PARTITION)
                DeltaTable.create(str(self.path), schema=schema, partition_by=[DATE], configuration=CONFIGURATION)
            table = DeltaTable(str(self.path))
        if table.metadata().partition_columns != [DATE]:
            raise UserError(
                f"The table {self.path} was written by an earlier version, which did not keep rows by date: start with "
                "another state directory, and read the old one with any Delta reader."
            )
        return table

    def refresh(self) -> DeltaTable:
        try:
            self.handle.update_incremental()
        except DeltaError as error:
            if not _is_outdated(error):
                raise
            # The log has been cleaned beyond what this handle knows: its writer slept, or the table is new.
            self._table = None
        return self.handle

    def position(self, slice_: int) -> Position:
        """What the log said at the last refresh."""
        table = self.handle
        epoch = table.transaction_version(f"slice-{slice_}-epoch")
        offset = table.transaction_version(f"slice-{slice_}")
        return Position(epoch or 0, offset or 0)

    def mark(self, slice_: int) -> Mark | None:
        """What the message at the slice's position was, as of the last refresh; None where there was none."""
        stamp_us = self.handle.transaction_version(f"slice-{slice_}-stamp")
        digest = self.handle.transaction_version(f"slice-{slice_}-digest")
        return Mark(stamp_us, digest or 0) if stamp_us else None

    def claim(self, wanted: Mapping[int, int], judge: Judge | None = None) -> dict[int, int]:
        """Fence off everybody below these epochs; return, per slice that could be claimed, the offset to go on from.

        ``judge`` may say that a slice goes on elsewhere, because its log is not the one that was read.
        """
        for _ in _attempts(f"claim slices of {self.name}"):
            self.refresh()
            positions = {slice_: self.position(slice_) for slice_ in wanted}
            mine = {slice_: at for slice_, at in positions.items() if at.epoch <= wanted[slice_]}
            starts = {
                slice_: at.offset if judge is None else judge(slice_, at.offset, self.mark(slice_))
                for slice_, at in mine.items()
            }
            changed = {
                slice_: Position(wanted[slice_], starts[slice_])
                for slice_, at in mine.items()
                if at != (wanted[slice_], starts[slice_])
            }
            if not changed:
                return starts
            moved = {slice_: None for slice_ in changed if starts[slice_] != mine[slice_].offset}
            self._try_commit([], changed, moved)
        raise AssertionError("unreachable")

    def commit(
        self, adds: list[AddAction], steps: Mapping[int, Step], marks: Mapping[int, Mark | None] | None = None
    ) -> None:
        """Add files and advance their slices in one transaction, or raise FencedError and change nothing."""
        reached = {slice_: Position(step.epoch, step.to) for slice_, step in steps.items()}
        self._check_files(adds)
        for _ in _attempts(f"commit to {self.name}"):
            self.refresh()
            positions = {slice_: self.position(slice_) for slice_ in steps}
            if positions == reached:
                return  # an attempt whose answer was lost had succeeded
            self.check(steps)
            if self._try_commit(adds, reached, marks or {}):
                return
        raise AssertionError("unreachable")

    def check(self, steps: Mapping[int, Step]) -> None:
        """Raise FencedError unless every slice was, at the last refresh, where its step begins."""
        for slice_, step in steps.items():
            at = self.position(slice_)
            if at != (step.epoch, step.after):
                raise FencedError(
                    f"Slice {slice_} of {self.name} is at epoch {at.epoch}, offset {at.offset}, not at epoch "
                    f"{step.epoch}, offset {step.after}: another node has it now, and this batch is dropped.",
                    where=f"{self.name}, slice {slice_}",
                    expected=Position(step.epoch, step.after),
                    found=at,
                )

    def _check_files(self, adds: list[AddAction]) -> None:
        """A table must never name a file that is not there."""
        for add in adds:
            path = self.path / add.path
            if not path.exists() or path.stat().st_size != add.size:
                raise TidegateError(
                    f"The file {path} is not there any more, or not whole: the batch is read and written again."
                )

    def _try_commit(
        self, adds: list[AddAction], reached: Mapping[int, Position], marks: Mapping[int, Mark | None]
    ) -> bool:
        records = []
        for slice_, position in reached.items():
            records.append(Transaction(f"slice-{slice_}", position.offset))
            records.append(Transaction(f"slice-{slice_}-epoch", position.epoch))
        for slice_, mark in marks.items():
            records.append(Transaction(f"slice-{slice_}-stamp", mark.stamp_us if mark else 0))
            records.append(Transaction(f"slice-{slice_}-digest", mark.digest if mark else 0))
        table = self.handle
        try:
            table.create_write_transaction(
                list(adds),
                "append",
                table.schema(),
                partition_by=[DATE],
                commit_properties=CommitProperties(app_transactions=records, max_commit_retries=20),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False),
            )
        except CommitFailedError:
            return False
        except DeltaError as error:
            if not _is_outdated(error):
                raise
            return False
        return True

    def rows(self, columns: list[str], slice_: int, after: int, to: int) -> pa.Table:
        """Stored rows of a slice between two offsets. Only files whose statistics allow such rows are opened."""
        schema = pa.schema([SCHEMAS[self.name].field(column) for column in columns])
        if after >= to:
            return schema.empty_table()
        files = pa.table(self.refresh().get_add_actions(flatten=True))
        low, high = pc.field("min.offset"), pc.field("max.offset")
        may_hold = (low <= to) & (high > after) & (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
        wanted = (pc.field("slice") == slice_) & (pc.field("offset") > after) & (pc.field("offset") <= to)
        needed = sorted({*columns, "slice", "offset"})

        def read(paths: list[str]) -> pa.Table:
            files = (open_file(path).read(columns=needed, use_threads=False) for path in paths)
            return pa.concat_tables(
                [schema.empty_table(), *(file.filter(wanted).select(columns).cast(schema) for file in files)]
            )

        return self.damage.read(files.filter(may_hold)["path"].to_pylist(), read)


def _is_outdated(error: DeltaError) -> bool:
    """delta-rs has one class for all that can be wrong with a table; of a cleaned log it says this."""
    return "Invalid table version" in str(error)


def _attempts(purpose: str) -> Iterable[int]:
    """Foreign commits may win any number of times; only the clock gives up, and it says so."""
    deadline = time.monotonic() + _COMMIT_S_MAX
    attempt = 0
    while time.monotonic() < deadline:
        yield attempt
        time.sleep(random.uniform(0.001, 0.02) * min(attempt + 1, 10))  # noqa: S311 - spreads writers, guards nothing
        attempt += 1
    raise TidegateError(f"Could not {purpose} within {_COMMIT_S_MAX:.0f} s: check the disk and the other writers.")


class Tables:
    """The three tables of an installation: readings, the means derived from them, and what was rejected."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.readings = LogTable(directory, "readings")
        self.means = LogTable(directory, "means")
        self.rejected = LogTable(directory, "rejected")

    def claim(self, wanted: Mapping[int, int], judge: Judge | None = None) -> dict[int, int]:
        """Claim slices in all tables; the readings table says where to go on."""
        with ThreadPoolExecutor(3) as together:
            others = [together.submit(table.claim, wanted) for table in (self.means, self.rejected)]
            claimed = [self.readings.claim(wanted, judge), *(other.result() for other in others)]
        return {slice_: offset for slice_, offset in claimed[0].items() if all(slice_ in one for one in claimed)}

    def epochs(self, slices: Iterable[int]) -> dict[int, int]:
        """The highest epoch that any table has seen of each slice, as of the last refresh."""
        tables = (self.readings, self.means, self.rejected)
        return {slice_: max(table.position(slice_).epoch for table in tables) for slice_ in slices}
