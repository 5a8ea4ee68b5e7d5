"""What a merge writes: sorted rows in, files out. Each ends with a slice once it is large enough."""

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from tidegate.pipeline.tables.groups import GROUP_BYTES, GroupWriter
from tidegate.pipeline.tables.statistics import Statistics, statistics_of, together, written
from tidegate.pipeline.tables.tables import DATE
from tidegate.pipeline.tables.writing import FILES

# Small enough that a look-up of one device reads little, large enough that a file has few of them.
GROUP_ROWS = 65_536


class Output:
    """``rows_per_file``: from how many rows on a file ends with its slice, and at how many it ends anyway."""

    def __init__(
        self,
        directory: Path,
        schema: pa.Schema,
        key: Sequence[str],
        day: date,
        rows_per_file: tuple[int, int],
        *,
        fsync: bool,
    ) -> None:
        self._directory, self._schema, self._day, self._fsync = directory, schema, day, fsync
        self._order = [pq.SortingColumn(schema.get_field_index(name)) for name in key]
        self._rows_min, self._rows_max = rows_per_file
        self.rows_seen = 0
        self._pending: pa.Table = schema.empty_table()
        self._slice: int | None = None  # of the last row that is in the file
        self._name = ""
        self._writer: pq.ParquetWriter | None = None
        self._groups: GroupWriter
        self._written: list[Statistics] = []
        self._adds: list[AddAction] = []
        self._made: list[Path] = []

    def add(self, rows: pa.Table) -> None:
        """Behind what is in the file, or in the first place."""
        self.rows_seen += rows.num_rows
        for slice_, part in _by_slice(rows):
            if slice_ != self._slice and self._rows() >= self._rows_min:
                self.end_file()
            self._slice = slice_
            self._take(part)

    def _take(self, part: pa.Table) -> None:
        while part.num_rows:
            room = self._rows_max - self._rows()
            self._pending = pa.concat_tables([self._pending, part.slice(0, room)])
            part = part.slice(room)
            self._write_groups()
            if part.num_rows:
                self.end_file()

    def _rows(self) -> int:
        return int(sum(part["numRecords"] for part in self._written) + self._pending.num_rows)

    def _write_groups(self, *, all_of_it: bool = False) -> None:
        while self._pending.num_rows and (all_of_it or self._is_group()):
            group, self._pending = self._pending.slice(0, GROUP_ROWS), self._pending.slice(GROUP_ROWS)
            if self._writer is None:
                self._writer = self._open()
                self._groups = GroupWriter(self._writer)
            self._groups.write(group)
            self._written.append(statistics_of(group))

    def _is_group(self) -> bool:
        """Few rows may be large: they are not waited with either."""
        return bool(self._pending.num_rows >= GROUP_ROWS or self._pending.nbytes >= GROUP_BYTES)

    def _open(self) -> pq.ParquetWriter:
        self._name = f"{DATE}={self._day}/part-{uuid.uuid4()}.parquet"
        path = self._directory / self._name
        self._made.append(path)
        return pq.ParquetWriter(path, self._schema, sorting_columns=self._order, **FILES)

    def end_file(self) -> None:
        """What comes now goes into another one, and need not come behind it."""
        self._write_groups(all_of_it=True)
        if self._writer is None:
            return
        self._groups.finish()
        self._writer.close()
        self._writer = None
        path = self._directory / self._name
        if self._fsync:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        made_ms, statistics = int(time.time() * 1000), written(together(self._written))
        self._adds.append(
            AddAction(self._name, path.stat().st_size, {DATE: str(self._day)}, made_ms, False, statistics)
        )
        self._written = []

    def finish(self) -> list[AddAction]:
        self.end_file()
        return self._adds

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.close()
        for path in self._made:
            path.unlink(missing_ok=True)


def _by_slice(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Sorted rows, slice by slice."""
    runs = rows["slice"].combine_chunks().value_counts() if rows.num_rows else []
    start = 0
    for run in runs:
        count = run["counts"].as_py()
        yield run["values"].as_py(), rows.slice(start, count)
        start += count
