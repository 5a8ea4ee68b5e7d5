"""Looking identities up in the readings' table itself: exact, for a whole batch at once, where memory cannot say.

Statistics skip what cannot hold them: files by date, slice, device, boot and sequence, and within a file that
maintenance has sorted, groups of rows.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipeline.tables.damage import dataset, open_file
from tidegate.pipeline.tables.tables import DATE, LogTable
from tidegate.pipeline.transforms.parsing import READINGS

IDENTITY = ["device", "boot", "seq"]
_IDENTITY = pa.schema([READINGS.field(name) for name in IDENTITY])
_FILE = "__filename"
# A reading may have 64 KiB of unknown fields, which compress to nothing.
_WIDE_ROWS = 1024
_FOLDED_ROWS = 1 << 20


def matching(table: LogTable, slice_: int, wanted: pa.Table, since: date, uncommitted: list[Path]) -> pa.Table:
    """The stored readings of a slice that have one of the wanted identities, and those in files yet to be committed."""
    ranges = {name: pc.min_max(wanted[name]).as_py() for name in IDENTITY}
    fitting = pc.field("slice") == slice_
    for name in ("boot", "seq"):
        fitting &= (pc.field(name) >= ranges[name]["min"]) & (pc.field(name) <= ranges[name]["max"])
    fitting &= pc.field("device").isin(pc.unique(wanted["device"]))
    asked = wanted.select(IDENTITY).combine_chunks()

    def read(paths: list[str]) -> pa.Table:
        holders = [_in(asked, rows)[_FILE] for rows in _streamed(paths, [*IDENTITY, _FILE], fitting)]
        paths = sorted({path for holder in holders for path in holder.unique().to_pylist()})
        found = [_in(asked, rows) for path in paths for rows in _whole(path, fitting)]
        return pa.concat_tables(found).cast(READINGS) if found else READINGS.empty_table()

    # What is yet to be committed is not set aside: without it the batch is not whole.
    stored = table.damage.read(_paths(table, slice_, ranges, since), read)
    return pa.concat_tables([stored, read([str(path) for path in uncommitted])])


def _in(asked: pa.Table, rows: pa.Table) -> pa.Table:
    """Those that have one of the asked identities."""
    return rows.join(asked, IDENTITY, join_type="inner").select(rows.column_names)


def highest(table: LogTable, slice_: int, devices: pa.Array, since: date) -> pa.Table:
    """Of each boot of these devices that has stored readings, the highest sequence: ``device``, ``boot``, ``seq``."""
    fitting = (pc.field("slice") == slice_) & pc.field("device").isin(devices) & pc.field("identified")

    def read(paths: list[str]) -> pa.Table:
        found = _IDENTITY.empty_table()
        for rows in _streamed(paths, IDENTITY, fitting):
            found = pa.concat_tables([found, rows.cast(_IDENTITY)])
            if found.num_rows > _FOLDED_ROWS:
                found = _highest(found)
        return _highest(found)

    return table.damage.read(_paths(table, slice_, {"device": pc.min_max(devices).as_py()}, since), read)


def _highest(rows: pa.Table) -> pa.Table:
    highs = rows.group_by(["device", "boot"]).aggregate([("seq", "max")]).rename_columns({"seq_max": "seq"})
    return highs.select(IDENTITY).cast(_IDENTITY)


def _streamed(paths: list[str], columns: list[str], fitting: pc.Expression) -> Iterator[pa.Table]:
    """The fitting rows bit by bit: a device may have stored more than fits into memory, and ask for one of them."""
    if paths:
        scanned = dataset(paths, READINGS).scanner(columns, fitting, batch_readahead=2, fragment_readahead=2)
        yield from (pa.Table.from_batches([batch]) for batch in scanned.to_batches() if batch.num_rows)


def _whole(path: str, fitting: pc.Expression) -> Iterator[pa.Table]:
    """A file's fitting rows with all columns. A scanner would have whole groups in memory, and several at once."""
    (fragment,) = dataset([path], READINGS).get_fragments()
    groups = [group.id for group in fragment.subset(fitting).row_groups]
    with open_file(path) as file:
        for batch in file.iter_batches(_WIDE_ROWS, groups, use_threads=False):
            rows = pa.Table.from_batches([batch]).filter(fitting)
            if rows.num_rows:
                yield rows


def _paths(table: LogTable, slice_: int, ranges: dict[str, Any], since: date) -> list[str]:
    """The active files that may hold such rows, by their statistics; relative to the table."""
    files = pa.table(table.refresh().get_add_actions(flatten=True))
    if not files.num_rows:
        return []
    may_hold = (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
    may_hold &= pc.field(f"partition.{DATE}") >= pa.scalar(since)
    for name, bounds in ranges.items():
        may_hold &= (pc.field(f"min.{name}") <= bounds["max"]) & (pc.field(f"max.{name}") >= bounds["min"])
    paths: list[str] = files.filter(may_hold)["path"].to_pylist()
    return paths
