"""Several files of a day as few, sorted, cut where slices end; in a bounded memory.

Small files fit into memory all together. Of files that were sorted before, one group of rows each is in memory, and
they are merged as far as those go. Files that were not sorted come first: what fits into memory of them becomes a
sorted file, which a later merge takes up.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake.transaction import AddAction

from tidegate.model.errors import TidegateError
from tidegate.pipeline.maintenance.inputs import Source, conformed, merged, open_sources, sorted_parts, width
from tidegate.pipeline.maintenance.keys import in_order
from tidegate.pipeline.maintenance.output import Output
from tidegate.pipeline.maintenance.planning import DataFile, Limits, rows_per_file
from tidegate.pipeline.tables.damage import open_file
from tidegate.pipeline.tables.groups import group_bytes

# The texts of a column that are sorted together must take less than 2 GiB, whatever the settings allow.
MEMORY_MAX = 1 << 30


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
    taken = list(files) if whole is not None else [source.file for source in sources]
    output = Output(
        how.directory, how.schema, how.key, taken[0].date, rows_per_file(taken, how.limits), fsync=how.fsync
    )
    try:
        if whole is not None:
            output.add(in_order(whole, how.key))
            how.rest()
        else:
            _write(how, sources, output)
        adds = output.finish()
        _check(taken, output.rows_seen, adds)
    except BaseException:
        output.discard()
        raise
    return taken, adds


def _write(how: Merging, sources: Sequence[Source], output: Output) -> None:
    in_one_order = all(source.is_sorted for source in sources)
    parts: Iterator[pa.Table] = (
        merged(sources, how.schema, how.key) if in_one_order else sorted_parts(sources, how.schema, how.key, how.memory)
    )
    for rows in parts:
        output.add(rows)
        if not in_one_order:
            output.end_file()
        how.rest()


def _estimate(file: DataFile, schema: pa.Schema) -> int:
    """Of the memory that its rows take, from what the log knows. Files are compressed, but hardly more than so much."""
    return max(file.rows * width(schema), file.size * 8)


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
            parts.append(conformed(reader.read(use_threads=False), how.schema))
    return pa.concat_tables(parts)


def _check(taken: Sequence[DataFile], read: int, adds: Sequence[AddAction]) -> None:
    """Merging must neither lose a row nor double one; should it ever, the old files stay."""
    before = sum(file.rows for file in taken) if all(file.rows for file in taken) else read
    after = sum(json.loads(add.stats)["numRecords"] for add in adds)
    if not before == read == after:
        raise TidegateError(
            f"Merging {len(taken)} files made {after} rows of {before}, so they stay as they are: report this as a "
            "fault of Tidegate, with the files.",
            where=taken[0].path,
            expected=before,
            found=after,
        )
