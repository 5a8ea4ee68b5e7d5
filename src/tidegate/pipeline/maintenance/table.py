"""A table as its maintainer sees it: active files, and commits that only one maintainer at a time can make.

A maintainer that begins raises the transaction ``maintainer-epoch`` in the table's log, and each of its commits carries
it. Before a commit the log must name that epoch and every file that is to go; the commit then takes exactly the next
version, or fails and looks again. So one that froze and wakes up late, or whose files somebody else has merged
meanwhile, changes nothing. Nodes need not know: their appends and these commits do not touch each other.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from tidegate.model.errors import FencedError, TidegateError
from tidegate.pipeline.maintenance.planning import DataFile
from tidegate.pipeline.tables.damage import SetAside
from tidegate.pipeline.tables.tables import DATE

EPOCH = "maintainer-epoch"
_COMMIT_S_MAX = 120.0
_SLICE_MAX = 2**31 - 1


class _File(msgspec.Struct):
    path: str


class _Entry(msgspec.Struct):
    """What of a line of the log is of interest here."""

    add: _File | None = None
    remove: _File | None = None


class MaintainedTable:
    """One handle, one thread. ``epoch`` is ours from ``begin`` on, until somebody else raises it."""

    def __init__(self, directory: Path, name: str, *, fsync: bool = False) -> None:
        self.name = name
        self.path = directory / name
        self.log = self.path / "_delta_log"
        self._fsync = fsync
        self._table: DeltaTable | None = None
        self.epoch: int | None = None
        self.damage = SetAside(name, self.path, lambda: self._active()[0])

    @property
    def exists(self) -> bool:
        """A table that no node has made yet is no problem."""
        return next(self.log.glob(f"{0:020d}.json"), None) is not None or (self.log / "_last_checkpoint").exists()

    def refresh(self) -> DeltaTable:
        """At the newest version. A handle that cannot follow, because its log was cleaned, is opened anew."""
        if self._table is not None:
            try:
                self._table.update_incremental()
            except DeltaError:
                self._table = None
        if self._table is None:
            self._table = self._open()
        return self._table

    def _open(self) -> DeltaTable:
        try:
            table = DeltaTable(str(self.path))
        except TableNotFoundError:
            raise TidegateError(f"{self.path} is no Delta table any more: restore it from a backup.") from None
        except DeltaError as error:
            raise TidegateError(f"The log of the table {self.path} cannot be read ({_first_line(error)}).") from None
        if table.metadata().partition_columns != [DATE]:
            raise TidegateError(
                f"The table {self.path} is not kept by date, as tables of earlier versions were: nodes do not write to "
                "it, and it is left as it is."
            )
        if table.protocol().min_reader_version > 1:
            raise TidegateError(
                f"The table {self.path} uses features that another program switched on ({table.protocol()}): it is not "
                "merged; let that program look after it."
            )
        return table

    @property
    def schema(self) -> pa.Schema:
        """Of the files: without the date, which is in their paths."""
        fields = pa.schema(self.refresh().schema().to_arrow())
        return pa.schema([field for field in fields if field.name != DATE])

    def files(self) -> list[DataFile]:
        """The active files. One whose statistics are missing may hold any slice."""
        actions = pa.table(self.refresh().get_add_actions(flatten=True))
        if not actions.num_rows:
            return []
        names = ["path", f"partition.{DATE}", "size_bytes", "num_records", "min.slice", "max.slice"]
        columns = [actions[name].to_pylist() for name in names]
        modified = pc.divide(actions["modification_time"].cast(pa.float64()), 1000.0).to_pylist()
        return [
            DataFile(path, day, size, rows or 0, 0 if low is None else low, _SLICE_MAX if high is None else high, at_s)
            for path, day, size, rows, low, high, at_s in zip(*columns, modified, strict=True)
            if isinstance(day, date)
        ]

    # -- the fence

    def begin(self) -> None:
        """Whoever may work now claims the table anew, with its first commit."""
        self.epoch = None

    def claim(self) -> None:
        """Fence off whoever was here before. Not needed before a commit, but before files are removed for good."""
        if self.epoch is None:
            for _ in self._attempts():
                epoch = (self.refresh().transaction_version(EPOCH) or 0) + 1
                if self._try_commit([], epoch, "claim"):
                    self.epoch = epoch
                    return
        self._check_epoch(self.refresh())

    def replace(
        self, old: Sequence[DataFile], new: Sequence[AddAction], *, what: str, data_change: bool = False
    ) -> None:
        """Take old files out of the table and put new ones in, in one commit; raise FencedError and change nothing."""
        self.claim()
        assert self.epoch is not None
        outgoing, incoming = {file.path for file in old}, {add.path for add in new}
        active, seen = self._active()
        for _ in self._attempts():
            table = self.refresh()
            self._check_epoch(table)
            # Looked at entry by entry: to list all files again would take so long that a busy writer is first again.
            active, seen = self._follow(active, seen, table.version())
            if incoming and incoming <= active:
                return  # an attempt whose answer was lost had succeeded
            self._check_active(outgoing - active)
            removes = [_remove(file, data_change=data_change) for file in old]
            if self._try_commit([*new, *removes], self.epoch, what):
                return

    def _active(self) -> tuple[set[str], int]:
        """The paths of the active files, and the version that has them."""
        table = self.refresh()
        return set(pa.table(table.get_add_actions())["path"].to_pylist()), table.version()

    def _follow(self, active: set[str], seen: int, version: int) -> tuple[set[str], int]:
        """What was active at one version, at a later one."""
        try:
            for number in range(seen + 1, version + 1):
                for line in (self.log / f"{number:020d}.json").read_bytes().splitlines():
                    entry = msgspec.json.decode(line, type=_Entry)
                    active = active - {entry.remove.path} if entry.remove is not None else active
                    active = active | {entry.add.path} if entry.add is not None else active
        except FileNotFoundError:  # the log was cleaned meanwhile
            return self._active()
        return active, version

    def _check_active(self, gone: set[str]) -> None:
        if gone:
            raise FencedError(
                f"{len(gone)} files of {self.name} that were to be replaced are no longer in it ({min(gone)}): another "
                "program changed it; the next round plans anew.",
                where=self.name,
                found=gone,
            )

    def _check_epoch(self, table: DeltaTable) -> None:
        found = table.transaction_version(EPOCH) or 0
        if found != self.epoch:
            raise FencedError(
                f"The table {self.name} is at maintainer epoch {found}, not at {self.epoch}: another maintainer has it "
                "now, and what this one was doing is dropped.",
                where=self.name,
                expected=self.epoch,
                found=found,
            )

    def _try_commit(self, actions: Sequence[AddAction | RemoveAction], epoch: int, what: str) -> bool:
        """Commit as exactly the next version after what the handle has seen; false where another commit was first."""
        table = self._table
        assert table is not None
        try:
            table.create_write_transaction(
                list(actions),
                "append",
                table.schema(),
                partition_by=[DATE],
                commit_properties=CommitProperties(
                    custom_metadata={"maintenance": what},
                    max_commit_retries=0,
                    app_transactions=[Transaction(EPOCH, epoch)],
                ),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
        except CommitFailedError:
            return False
        if self._fsync:
            sync(self.log / f"{table.version() + 1:020d}.json")
        return True

    def _attempts(self) -> Iterator[None]:
        deadline_s = time.monotonic() + _COMMIT_S_MAX
        while time.monotonic() < deadline_s:
            yield
            time.sleep(random.uniform(0.0, 0.02))  # noqa: S311 - spreads writers, guards nothing
        raise TidegateError(
            f"Could not change the table {self.name} within {_COMMIT_S_MAX:.0f} s: check disk and writers."
        )

    # -- properties

    def ensure(self, properties: dict[str, str]) -> bool:
        """Set what differs; whether anything did."""
        table = self.refresh()
        found = table.metadata().configuration
        different = {name: wanted for name, wanted in properties.items() if found.get(name) != wanted}
        if different:
            table.alter.set_table_properties(different)
        return bool(different)


def _remove(file: DataFile, *, data_change: bool) -> RemoveAction:
    now_ms = int(time.time() * 1000)
    return RemoveAction(file.path, data_change, now_ms, file.size, {DATE: str(file.date)})


def sync(path: Path) -> None:
    """A file and the name it stands under, for certain on the disk."""
    for one in (path, path.parent):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
