"""Rows of a table bit by bit, so that neither many nor long ones fill the memory."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipeline.tables.damage import UNREADABLE, dataset, open_file
from tidegate.pipeline.tables.tables import SCHEMAS, LogTable

PIECE_ROWS, PIECE_BYTES = 65_536, 16 << 20
_BATCH_ROWS = 4_096  # a name or a payload may be long, and take nothing in a file


def files_of(table: LogTable) -> pa.Table:
    """The active files as of the last refresh, with their statistics."""
    return pa.table(table.handle.get_add_actions(flatten=True))


def pieces(table: LogTable, paths: list[str], columns: list[str], fitting: pc.Expression) -> Iterator[pa.Table]:
    """The rows of these files that fit, with the columns that are named; those are all that it may be judged by.

    Where a file turns out to be damaged, rows that came before that come twice.
    """
    try:
        yield from _gathered(_batches(table, paths, columns, fitting))
    except UNREADABLE:
        if not table.damage.examine(paths):
            raise
        yield from _gathered(_batches(table, paths, columns, fitting))


def _batches(table: LogTable, paths: list[str], columns: list[str], fitting: pc.Expression) -> Iterator[pa.Table]:
    """A group at a time: a scanner has all of a file in memory, if whoever asks is slower."""
    for path in table.damage.read(paths, list):  # without those that are set aside
        with open_file(path) as file:
            groups = list(range(file.num_row_groups))
            if len(groups) > 1:
                (fragment,) = dataset([path], SCHEMAS[table.name]).get_fragments()
                groups = [group.id for group in fragment.subset(fitting).row_groups]
            for group in groups:
                for batch in file.iter_batches(_BATCH_ROWS, [group], columns, use_threads=False):
                    yield pa.Table.from_batches([batch]).filter(fitting)


def _gathered(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """As few as there may be: a node's files have some hundred rows each."""
    held: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= PIECE_ROWS or size >= PIECE_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)
