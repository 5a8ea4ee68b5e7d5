"""The order of a table's rows: ``(slice, device, boot, seq)`` for readings. Nulls come last, as pyarrow sorts them.

Texts are in the order of their code points, which is that of their bytes: Python, pyarrow and delta-rs agree.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

KEYS = {
    "readings": ("slice", "device", "boot", "seq"),
    "means": ("slice", "device", "window_start"),
    "rejected": ("slice", "offset"),
}

# Of each column: a value sorts by (False, value), a null by (True, 0).
Key = tuple[tuple[bool, Any], ...]


def in_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in key])


def key_at(rows: pa.Table, key: Sequence[str], place: int) -> Key:
    values = (rows[name][place].as_py() for name in key)
    return tuple((True, 0) if value is None else (False, value) for value in values)


def rows_up_to(rows: pa.Table, key: Sequence[str], end: Key) -> int:
    """How many of these rows, which are in order, do not come behind ``end``."""
    return bisect_right(range(rows.num_rows), end, key=lambda place: key_at(rows, key, place))
