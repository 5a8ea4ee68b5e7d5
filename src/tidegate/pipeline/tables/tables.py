"""The Delta tables and what their own log says about each slice.

Every commit carries, for each slice it covers, how far the slice now is (transaction ``slice-N``) and under which
epoch that was written (``slice-N-epoch``). The two records are position and fence in one: a writer commits only from
exactly the position it started at and only under the epoch it claimed, so a node that lost its slice, however late it
wakes up, can add nothing.
"""

import random
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction

from tidegate.model.errors import FencedError, TidegateError
from tidegate.pipeline.transforms.means import MEANS
from tidegate.pipeline.transforms.parsing import READINGS, REJECTED

SCHEMAS: dict[str, pa.Schema] = {"readings": READINGS, "means": MEANS, "rejected": REJECTED}
# A commit replays the log since the last checkpoint, so frequent checkpoints keep commits short.
_CONFIGURATION: dict[str, str | None] = {"delta.checkpointInterval": "20", "delta.appendOnly": "true"}
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


class LogTable:
    """One Delta table whose commits advance slices. One handle, one thread."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.path = directory / name
        self._table: DeltaTable | None = None

    @property
    def handle(self) -> DeltaTable:
        if self._table is None:
            self._table = self._open()
        return self._table

    def _open(self) -> DeltaTable:
        try:
            return DeltaTable(str(self.path))
        except TableNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True)
            with suppress(CommitFailedError):  # another node may be first
                DeltaTable.create(str(self.path), schema=SCHEMAS[self.name], configuration=_CONFIGURATION)
            return DeltaTable(str(self.path))

    def refresh(self) -> DeltaTable:
        table = self.handle
        table.update_incremental()
        return table

    def position(self, slice_: int) -> Position:
        """What the log said at the last refresh."""
        table = self.handle
        epoch = table.transaction_version(f"slice-{slice_}-epoch")
        offset = table.transaction_version(f"slice-{slice_}")
        return Position(epoch or 0, offset or 0)

    def claim(self, wanted: Mapping[int, int]) -> dict[int, int]:
        """Fence off everybody below these epochs; return, per slice that could be claimed, the offset to go on from."""
        for _ in _attempts(f"claim slices of {self.name}"):
            self.refresh()
            positions = {slice_: self.position(slice_) for slice_ in wanted}
            mine = {slice_: at for slice_, at in positions.items() if at.epoch <= wanted[slice_]}
            lower = {slice_: at for slice_, at in mine.items() if at.epoch < wanted[slice_]}
            if not lower:
                return {slice_: at.offset for slice_, at in mine.items()}
            self._try_commit([], {slice_: Position(wanted[slice_], at.offset) for slice_, at in lower.items()})
        raise AssertionError("unreachable")

    def commit(self, adds: list[AddAction], steps: Mapping[int, Step]) -> None:
        """Add files and advance their slices in one transaction, or raise FencedError and change nothing."""
        reached = {slice_: Position(step.epoch, step.to) for slice_, step in steps.items()}
        for _ in _attempts(f"commit to {self.name}"):
            self.refresh()
            positions = {slice_: self.position(slice_) for slice_ in steps}
            if positions == reached:
                return  # an attempt whose answer was lost had succeeded
            for slice_, step in steps.items():
                if positions[slice_] != (step.epoch, step.after):
                    raise FencedError(
                        f"Slice {slice_} of {self.name} is at epoch {positions[slice_].epoch}, offset "
                        f"{positions[slice_].offset}, not at epoch {step.epoch}, offset {step.after}: another node has "
                        "it now, and this batch is dropped.",
                        where=f"{self.name}, slice {slice_}",
                        expected=Position(step.epoch, step.after),
                        found=positions[slice_],
                    )
            if self._try_commit(adds, reached):
                return
        raise AssertionError("unreachable")

    def _try_commit(self, adds: list[AddAction], reached: Mapping[int, Position]) -> bool:
        records = []
        for slice_, position in reached.items():
            records.append(Transaction(f"slice-{slice_}", position.offset))
            records.append(Transaction(f"slice-{slice_}-epoch", position.epoch))
        table = self.handle
        try:
            table.create_write_transaction(
                list(adds),
                "append",
                table.schema(),
                commit_properties=CommitProperties(app_transactions=records, max_commit_retries=20),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False),
            )
        except CommitFailedError:
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
        parts = [
            pq.ParquetFile(self.path / path).read(columns=needed, use_threads=False).filter(wanted).select(columns)
            for path in files.filter(may_hold)["path"].to_pylist()
        ]
        return pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()

    def compact(self) -> tuple[int, int, int]:
        """Merge small files; number of files before and after, and of orphans removed. Writers are not disturbed."""
        table = self.refresh()
        before = len(table.file_uris())
        table.optimize.compact()
        table.create_checkpoint()
        removed = table.vacuum(dry_run=False)
        return before, len(table.file_uris()), len(removed)


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

    def claim(self, wanted: Mapping[int, int]) -> dict[int, int]:
        """Claim slices in all tables; the readings table says where to go on."""
        with ThreadPoolExecutor(3) as together:
            tables = (self.readings, self.means, self.rejected)
            claimed = list(together.map(lambda table: table.claim(wanted), tables))
        return {slice_: offset for slice_, offset in claimed[0].items() if all(slice_ in others for others in claimed)}
