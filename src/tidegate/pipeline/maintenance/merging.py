"""Several files of a day as few, sorted, cut where slices end; in a bounded memory.

Small files fit into memory all together. Of others, rows are read range by range of their key (``keys.py``): of a file
that was sorted before, only the groups that may hold such rows. A file that was not sorted is read whole for each
range, so such files are merged first, as many as fit into memory in one range.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from tidegate.model.errors import TidegateError
from tidegate.pipeline.maintenance.keys import NULL, Bound, Group, ranges, value, within
from tidegate.pipeline.maintenance.planning import DataFile, Limits, rows_per_file
from tidegate.pipeline.tables.damage import open_file
from tidegate.pipeline.tables.groups import GroupWriter, group_bytes
from tidegate.pipeline.tables.statistics import Statistics, statistics_of, together, written
from tidegate.pipeline.tables.tables import DATE
from tidegate.pipeline.tables.writing import FILES

# Small enough that a look-up of one device reads little, large enough that a file has few of them.
GROUP_ROWS = 65_536
_STRING_BYTES = 24


@dataclass(frozen=True)
class Merging:
    """How to merge: where, into which columns, in which order, in how much memory, into how large files."""

    directory: Path
    schema: pa.Schema
    key: Sequence[str]
    memory: int
    limits: Limits
    fsync: bool
    rest: Callable[[], None]


def merge(how: Merging, files: Sequence[DataFile]) -> tuple[list[DataFile], list[AddAction]]:
    """Write the rows of some of the files anew: those files, and what to add to the table in their place.

    All of them, where they fit into memory. On any error nothing stays behind.
    """
    whole = _whole(how, files)
    sources = open_sources(how.directory, files, how.key, how.memory) if whole is None else []
    merged = list(files) if whole is not None else [source.file for source in sources]
    output = _Output(how, merged)
    try:
        for rows in [whole] if whole is not None else _by_ranges(how, sources):
            output.add(rows.sort_by([(name, "ascending") for name in how.key]))
            how.rest()
        adds = output.finish()
        _check(merged, output.rows_seen, adds)
    except BaseException:
        output.discard()
        raise
    return merged, adds


def _estimate(file: DataFile, schema: pa.Schema) -> int:
    """Of the memory that its rows take, from what the log knows. Files are compressed, but hardly more than so much."""
    return max(file.rows * sum(map(_width, schema)), file.size * 8)


def _width(field: pa.Field) -> int:
    return _STRING_BYTES if not pa.types.is_primitive(field.type) else max(1, field.type.bit_width // 8)


def _whole(how: Merging, files: Sequence[DataFile]) -> pa.Table | None:
    """All rows at once, from many small files: nothing is opened twice. None where they do not fit into memory.

    What a device says in every reading takes next to nothing in a file, and all of its length in memory: it is counted.
    """
    if sum(_estimate(file, how.schema) for file in files) > how.memory:
        return None
    parts: list[pa.Table] = []
    taken = 0
    for file in files:
        with open_file(how.directory / file.path) as reader:
            taken += sum(group_bytes(reader.metadata))
            if taken > how.memory:
                return None
            parts.append(_as(reader.read(use_threads=False), how.schema))
    return pa.concat_tables(parts)


def _by_ranges(how: Merging, sources: Sequence["Source"]) -> Iterator[pa.Table]:
    for after, before in ranges([group for source in sources for group in source.groups], how.memory):
        yield pa.concat_tables(
            [
                how.schema.empty_table(),
                *(
                    within(_as(source.read(group), how.schema), how.key, after, before)
                    for source in sources
                    for group in source.groups
                    if group.may_hold(after, before)
                ),
            ]
        )


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the table's columns of today: a file that was written before a column existed has nulls there."""
    if rows.schema.equals(schema):
        return rows
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _check(merged: Sequence[DataFile], read: int, adds: Sequence[AddAction]) -> None:
    """Merging must neither lose a row nor double one; should it ever, the old files stay."""
    before = sum(file.rows for file in merged) if all(file.rows for file in merged) else read
    after = sum(json.loads(add.stats)["numRecords"] for add in adds)
    if not before == read == after:
        raise TidegateError(
            f"Merging {len(merged)} files made {after} rows of {before}, so they stay as they are: report this as a "
            "fault of Tidegate, with the files.",
            where=merged[0].path,
            expected=before,
            found=after,
        )


@dataclass(frozen=True)
class Source:
    """An input file and what its footer tells."""

    file: DataFile
    path: Path
    footer: pq.FileMetaData
    groups: tuple[Group, ...]
    is_sorted: bool

    @property
    def footprint(self) -> int:
        """What must be in memory of it whatever range is read: a group, or all of it where rows have no order."""
        sizes = [group.memory for group in self.groups]
        return max(sizes, default=0) if self.is_sorted else sum(sizes)

    def read(self, group: Group) -> pa.Table:
        with open_file(self.path, self.footer) as reader:
            return reader.read_row_group(group.number, use_threads=False)


def open_sources(directory: Path, files: Sequence[DataFile], key: Sequence[str], memory: int) -> list[Source]:
    """The first files that can be merged within the memory, two at least; of these only the unsorted ones, if any."""
    sources: list[Source] = []
    taken = 0
    for file in files:
        source = _source(directory, file, key, len(sources))
        taken += source.footprint
        if taken > memory and len(sources) > 1:
            break
        sources.append(source)
    return [source for source in sources if not source.is_sorted] or sources


def _source(directory: Path, file: DataFile, key: Sequence[str], number: int) -> Source:
    with open_file(directory / file.path) as reader:
        footer, width = reader.metadata, sum(map(_width, reader.schema_arrow))
    places = {footer.schema.column(place).path: place for place in range(len(footer.schema))}
    order = [pq.SortingColumn(places[name]) for name in key]
    groups, is_sorted = [], True
    for index, size in enumerate(group_bytes(footer)):
        group = footer.row_group(index)
        is_sorted &= list(group.sorting_columns)[: len(key)] == order
        low, high = _bounds(group, [places[name] for name in key])
        groups.append(Group(number, index, low, high, max(size, group.num_rows * width)))
    return Source(file, directory / file.path, footer, tuple(groups), is_sorted)


def _bounds(group: pq.RowGroupMetaData, columns: Sequence[int]) -> tuple[Bound, Bound]:
    """The statistics of the leading columns, as far as all rows agree in those before."""
    low: Bound = ()
    for column in columns:
        known = group.column(column).statistics
        if known is None or not known.has_null_count or not (known.has_min_max or known.null_count == group.num_rows):
            return low, low
        least = value(known.min) if known.has_min_max else NULL
        most = NULL if known.null_count else value(known.max)
        if least != most:
            return (*low, least), (*low, most)
        low = (*low, least)
    return low, low


class _Output:
    """Sorted rows in, files out: each ends with a slice once it is large enough."""

    def __init__(self, how: Merging, merged: Sequence[DataFile]) -> None:
        self._directory, self._schema, self._fsync = how.directory, how.schema, how.fsync
        self._date = merged[0].date
        self._order = [pq.SortingColumn(how.schema.get_field_index(name)) for name in how.key]
        self._rows_min, self._rows_max = rows_per_file(merged, how.limits)
        self.rows_seen = 0
        self._pending: pa.Table = how.schema.empty_table()
        self._slice: int | None = None  # of the last row that is in the file
        self._name = ""
        self._writer: pq.ParquetWriter | None = None
        self._groups: GroupWriter
        self._written: list[Statistics] = []
        self._adds: list[AddAction] = []
        self._made: list[Path] = []

    def add(self, rows: pa.Table) -> None:
        self.rows_seen += rows.num_rows
        for slice_, part in _by_slice(rows):
            if slice_ != self._slice and self._rows() >= self._rows_min:
                self._end_file()
            self._slice = slice_
            self._take(part)

    def _take(self, part: pa.Table) -> None:
        while part.num_rows:
            room = self._rows_max - self._rows()
            self._pending = pa.concat_tables([self._pending, part.slice(0, room)])
            part = part.slice(room)
            self._write_groups()
            if part.num_rows:
                self._end_file()

    def _rows(self) -> int:
        return int(sum(part["numRecords"] for part in self._written) + self._pending.num_rows)

    def _write_groups(self, *, all_of_it: bool = False) -> None:
        while self._pending.num_rows >= GROUP_ROWS or (all_of_it and self._pending.num_rows):
            group, self._pending = self._pending.slice(0, GROUP_ROWS), self._pending.slice(GROUP_ROWS)
            if self._writer is None:
                self._writer = self._open()
                self._groups = GroupWriter(self._writer)
            self._groups.write(group)
            self._written.append(statistics_of(group))

    def _open(self) -> pq.ParquetWriter:
        self._name = f"{DATE}={self._date}/part-{uuid.uuid4()}.parquet"
        path = self._directory / self._name
        self._made.append(path)
        return pq.ParquetWriter(path, self._schema, sorting_columns=self._order, **FILES)

    def _end_file(self) -> None:
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
            AddAction(self._name, path.stat().st_size, {DATE: str(self._date)}, made_ms, False, statistics)
        )
        self._written = []

    def finish(self) -> list[AddAction]:
        self._end_file()
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
