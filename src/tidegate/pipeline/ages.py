"""How old readings were when the tables had them: the measure that everything else is judged by.

A reading's age is the time of its commit less the time it was taken. A message that stands for several readings waited
on its device as well, so it counts from the middle between its first and its last one, and as many times as it stands
for readings. The commit's time is that of the entry in the table's log: what a reader of the table could see, when.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_COLUMNS = ["device", "boot", "time", "count", "first", "last", "arrived"]


def committed(table: Path) -> pa.Table:
    """Every message of the readings' table: who sent it, when it was taken, arrived in the log and was committed.

    Columns: ``device``, ``boot``, ``committed_s``, ``arrived_s``, ``taken_s``, ``count``; times are Unix time.
    """
    parts = []
    for entry in sorted((table / "_delta_log").glob("*.json")):
        committed_s = entry.stat().st_mtime
        for line in entry.read_text().splitlines():
            added = json.loads(line).get("add")
            # A compaction writes the same rows again: they have been there before.
            if added and added.get("dataChange", True):
                parts.append(_part(pq.read_table(table / added["path"], columns=_COLUMNS), committed_s))
    return pa.concat_tables(parts) if parts else _part(_empty(), 0.0)


def delays_s(table: Path, skip_s: float) -> list[float]:
    """For each stored reading, the time of its commit less the time it was sent; without the first ``skip_s``."""
    rows = committed(table)
    committed_s, taken_s = (rows[name].to_numpy() for name in ("committed_s", "taken_s"))
    late = committed_s - committed_s.min(initial=float("inf")) >= skip_s
    return [float(delay) for delay in (committed_s - taken_s)[late]]


def _empty() -> pa.Table:
    stamp = pa.timestamp("us", tz="UTC")
    kinds = [pa.string(), pa.int64(), stamp, pa.int64(), stamp, stamp, stamp]
    return pa.schema(zip(_COLUMNS, kinds, strict=True)).empty_table()


def _part(rows: pa.Table, committed_s: float) -> pa.Table:
    last = _seconds(rows["time"])
    first, final = (_seconds(pc.coalesce(rows[name], rows["time"])) for name in ("first", "last"))
    middle = np.where(np.asarray(rows["count"]) > 1, (first + final) / 2, last)
    return pa.table(
        {
            "device": rows["device"].combine_chunks(),
            "boot": rows["boot"].combine_chunks(),
            "committed_s": np.full(rows.num_rows, committed_s),
            "arrived_s": _seconds(rows["arrived"]),
            "taken_s": middle,
            "count": rows["count"].combine_chunks(),
        }
    )


def _seconds(stamps: pa.ChunkedArray) -> np.ndarray:
    seconds: np.ndarray = stamps.cast(pa.int64()).to_numpy() / 1e6
    return seconds
