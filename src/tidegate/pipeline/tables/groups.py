"""A file's rows in groups that each fit into memory, and how much that is: what a reader takes at once is a group.

Unknown fields of 64 KiB that are the same in every row take nothing in a file and all of their length in memory, so a
file's own sizes do not tell. They are written down beside the groups.
"""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

GROUP_BYTES = 16 << 20  # in memory
_KEY = "tidegate.group_bytes"


class GroupWriter:
    """Writes into a file that somebody else opens and closes."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._sizes: list[int] = []

    def write(self, rows: pa.Table) -> None:
        for group in _groups(rows):
            self._writer.write_table(group, row_group_size=group.num_rows)
            self._sizes.append(group.nbytes)

    def finish(self) -> None:
        """Before the file is closed."""
        self._writer.add_key_value_metadata({_KEY: json.dumps(self._sizes)})


def _groups(rows: pa.Table) -> Iterator[pa.Table]:
    if rows.nbytes <= GROUP_BYTES or rows.num_rows < 2:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _groups(rows.slice(0, half))
    yield from _groups(rows.slice(half))


def group_bytes(footer: pq.FileMetaData) -> list[int]:
    """What each group takes in memory; of a file that does not say, what it takes in the file."""
    told = (footer.metadata or {}).get(_KEY.encode())
    sizes = [footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)]
    found = json.loads(told) if told is not None else sizes
    return [max(both) for both in zip(found, sizes, strict=True)] if len(found) == len(sizes) else sizes
