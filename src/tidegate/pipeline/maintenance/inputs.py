"""The files that a merge reads, a group of rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.pipeline.maintenance.keys import Key, in_order, key_at, rows_up_to
from tidegate.pipeline.maintenance.planning import DataFile
from tidegate.pipeline.tables.damage import open_file
from tidegate.pipeline.tables.groups import group_bytes

_STRING_BYTES = 24


def width(schema: pa.Schema) -> int:
    """What a row takes in memory at least, as a rule."""
    types = [field.type for field in schema]
    return sum(max(1, type_.bit_width // 8) if pa.types.is_primitive(type_) else _STRING_BYTES for type_ in types)


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the table's columns of today: a file that was written before a column existed has nulls there."""
    if rows.schema.equals(schema):
        return rows
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Source:
    """An input file and what its footer tells."""

    file: DataFile
    path: Path
    footer: pq.FileMetaData
    sizes: tuple[int, ...]  # of its groups, in memory
    is_sorted: bool

    @property
    def footprint(self) -> int:
        """What must be in memory of it at a time: a group, or all of it where rows have no order."""
        return max(self.sizes, default=0) if self.is_sorted else sum(self.sizes)

    def read(self, group: int, schema: pa.Schema) -> pa.Table:
        with open_file(self.path, self.footer) as reader:
            return conformed(reader.read_row_group(group, use_threads=False), schema)


def open_sources(directory: Path, files: Sequence[DataFile], key: Sequence[str], memory: int) -> list[Source]:
    """The first files that can be merged within the memory, two at least; of these only the unsorted ones, if any."""
    sources: list[Source] = []
    taken = 0
    for file in files:
        source = _source(directory, file, key)
        taken += source.footprint
        if taken > memory and len(sources) > 1:
            break
        sources.append(source)
    return [source for source in sources if not source.is_sorted] or sources


def _source(directory: Path, file: DataFile, key: Sequence[str]) -> Source:
    with open_file(directory / file.path) as reader:
        footer, row_bytes = reader.metadata, width(reader.schema_arrow)
    places = {footer.schema.column(place).path: place for place in range(len(footer.schema))}
    order = [pq.SortingColumn(places[name]) for name in key]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    sizes = (max(size, group.num_rows * row_bytes) for size, group in zip(group_bytes(footer), groups, strict=True))
    is_sorted = all(list(group.sorting_columns)[: len(key)] == order for group in groups)
    return Source(file, directory / file.path, footer, tuple(sizes), is_sorted)


def sorted_parts(sources: Sequence[Source], schema: pa.Schema, key: Sequence[str], memory: int) -> Iterator[pa.Table]:
    """All rows of sources that have no order, as parts that are each in order, and fit into memory."""
    held: list[pa.Table] = []
    taken = 0
    for source in sources:
        for group, size in enumerate(source.sizes):
            if held and taken + size > memory:
                yield in_order(pa.concat_tables(held), key)
                held, taken = [], 0
            held.append(source.read(group, schema))
            taken += size
    yield in_order(pa.concat_tables([schema.empty_table(), *held]), key)


def merged(sources: Sequence[Source], schema: pa.Schema, key: Sequence[str]) -> Iterator[pa.Table]:
    """All rows of sorted sources in one order, bit by bit. One group of each is in memory, however alike keys are."""
    cursors = [cursor for source in sources if (cursor := _Cursor(source, schema, key)).fill()]
    while cursors:
        # So far each source has shown what it has: nothing that comes later belongs before it.
        end = min(cursor.last for cursor in cursors)
        parts = [part for cursor in cursors if (part := cursor.take(end)).num_rows]
        rows = parts[0] if len(parts) == 1 else in_order(pa.concat_tables(parts), key)
        del parts
        yield rows
        cursors = [cursor for cursor in cursors if cursor.fill()]


class _Cursor:
    """A place in a sorted source, with the group that it is in."""

    last: Key  # of the rows that are in memory

    def __init__(self, source: Source, schema: pa.Schema, key: Sequence[str]) -> None:
        self._source, self._schema, self._key = source, schema, key
        self._groups = iter(range(len(source.sizes)))
        self._rows: pa.Table = schema.empty_table()

    def fill(self) -> bool:
        """Go on to the next group where the last one is used up; whether there is anything left."""
        while not self._rows.num_rows:
            group = next(self._groups, None)
            if group is None:
                return False
            self._rows = self._source.read(group, self._schema)
            if self._rows.num_rows:
                self.last = key_at(self._rows, self._key, -1)
        return True

    def take(self, end: Key) -> pa.Table:
        # A file that only claims to be in order must not stop here for ever.
        count = self._rows.num_rows if self.last <= end else rows_up_to(self._rows, self._key, end)
        taken, self._rows = self._rows.slice(0, count), self._rows.slice(count)
        return taken
