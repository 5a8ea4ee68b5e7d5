"""The order of a table's rows, and how to cut it into ranges that fit into memory.

A key is what rows are sorted by: ``(slice, device, boot, seq)`` for readings. Nulls come last, as pyarrow sorts them.
A bound is the beginning of a key: ``(3,)`` stands before every row of slice 3. Two bounds make a range; the empty
bound is the lowest, and None in the place of a bound is behind everything.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

KEYS = {
    "readings": ("slice", "device", "boot", "seq"),
    "means": ("slice", "device", "window_start"),
    "rejected": ("slice", "offset"),
}


# A value sorts by (False, value), a null by (True, 0).
Part = tuple[bool, Any]
Bound = tuple[Part, ...]
NULL: Part = (True, 0)


def value(of: Any) -> Part:
    return NULL if of is None else (False, of)


@dataclass(frozen=True)
class Group:
    """A group of rows in a file, as its statistics tell. Every key is at or behind ``low``.

    ``high`` is the beginning of the highest key there may be: what begins with it may be inside.
    """

    file: int
    number: int
    low: Bound
    high: Bound
    memory: int

    def may_hold(self, after: Bound, before: Bound | None) -> bool:
        return (before is None or self.low < before) and self.high >= after[: len(self.high)]


def ranges(groups: Iterable[Group], memory: int) -> Iterator[tuple[Bound, Bound | None]]:
    """Ranges in ascending order, that cover everything; the groups that begin in one take about so much memory."""
    bounds: list[Bound] = [()]
    taken = 0
    for group in sorted(groups, key=lambda group: group.low):
        if taken + group.memory > memory and taken and group.low > bounds[-1]:
            bounds.append(group.low)
            taken = 0
        taken += group.memory
    ends: list[Bound | None] = [*bounds[1:], None]
    return zip(bounds, ends, strict=True)


def within(rows: pa.Table, key: Sequence[str], after: Bound, before: Bound | None) -> pa.Table:
    """The rows at or behind ``after`` and before ``before``."""
    if after:
        rows = rows.filter(_from(rows, key, after))
    if before is not None:
        rows = rows.filter(pc.invert(_from(rows, key, before)))
    return rows


def _from(rows: pa.Table, key: Sequence[str], bound: Bound) -> pa.ChunkedArray:
    """Which rows are at or behind the bound."""
    (is_null, low), *rest = bound
    column = rows[key[0]]
    if is_null:
        equal, behind = column.is_null(), pa.scalar(False)
    else:
        scalar = pa.scalar(low, column.type)
        equal = pc.fill_null(pc.equal(column, scalar), False)
        behind = pc.fill_null(pc.greater(column, scalar), True)
    return pc.or_(behind, pc.and_(equal, _from(rows, key[1:], tuple(rest))) if rest else equal)
