"""Looking identities up in the readings' table itself: exact, for a whole batch at once, where memory cannot say.

Statistics skip what cannot hold them: files by date, slice, device, boot and sequence, and within a file that
maintenance has sorted, groups of rows.
"""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tidegate.pipeline.tables.tables import DATE, LogTable
from tidegate.pipeline.transforms.parsing import READINGS

IDENTITY = ["device", "boot", "seq"]
_IDENTITY = pa.schema([READINGS.field(name) for name in IDENTITY])


def matching(table: LogTable, slice_: int, wanted: pa.Table, since: date, uncommitted: list[Path]) -> pa.Table:
    """The stored readings of a slice that have one of the wanted identities, and those in files yet to be committed."""
    ranges = {name: pc.min_max(wanted[name]).as_py() for name in IDENTITY}
    fitting = pc.field("slice") == slice_
    for name in ("boot", "seq"):
        fitting &= (pc.field(name) >= ranges[name]["min"]) & (pc.field(name) <= ranges[name]["max"])
    fitting &= pc.field("device").isin(pc.unique(wanted["device"]))
    paths = [*_paths(table, slice_, ranges, since), *map(str, uncommitted)]
    if not paths:
        return READINGS.empty_table()
    found = _dataset(paths).to_table(filter=fitting)
    return found.join(wanted.select(IDENTITY).combine_chunks(), IDENTITY, join_type="inner").select(READINGS.names)


def boxed(
    table: LogTable, slice_: int, *, device: list[str], boot: tuple[int, int], seq: tuple[int, int], since: date
) -> pa.Table:
    """The identities that a slice has stored of these devices within these bounds, both ends included."""
    low_high = {"device": (min(device), max(device)), "boot": boot, "seq": seq}
    ranges = {name: {"min": low, "max": high} for name, (low, high) in low_high.items()}
    paths = _paths(table, slice_, ranges, since)
    if not paths:
        return _IDENTITY.empty_table()
    fitting = (pc.field("slice") == slice_) & pc.field("device").isin(pa.array(device, pa.string()))
    for name, (low, high) in (("boot", boot), ("seq", seq)):
        fitting &= (pc.field(name) >= low) & (pc.field(name) <= high)
    return _dataset(paths).to_table(columns=IDENTITY, filter=fitting)


def highest(table: LogTable, slice_: int, devices: pa.Array, since: date) -> pa.Table:
    """Of each boot of these devices that has stored readings, the highest sequence: ``device``, ``boot``, ``seq``."""
    paths = _paths(table, slice_, {"device": pc.min_max(devices).as_py()}, since)
    if not paths:
        return _IDENTITY.empty_table()
    fitting = (pc.field("slice") == slice_) & pc.field("device").isin(devices) & pc.field("identified")
    found = _dataset(paths).to_table(columns=IDENTITY, filter=fitting)
    return found.group_by(["device", "boot"]).aggregate([("seq", "max")]).rename_columns({"seq_max": "seq"})


def _dataset(paths: list[str]) -> ds.Dataset:
    return ds.dataset(paths, schema=READINGS, format="parquet", partitioning=None)


def _paths(table: LogTable, slice_: int, ranges: dict[str, Any], since: date) -> list[str]:
    """The active files that may hold such rows, by their statistics."""
    files = pa.table(table.refresh().get_add_actions(flatten=True))
    if not files.num_rows:
        return []
    may_hold = (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
    may_hold &= pc.field(f"partition.{DATE}") >= pa.scalar(since)
    for name, bounds in ranges.items():
        may_hold &= (pc.field(f"min.{name}") <= bounds["max"]) & (pc.field(f"max.{name}") >= bounds["min"])
    return [str(table.path / path) for path in files.filter(may_hold)["path"].to_pylist()]
