"""Readings to mergeable partial means, and partial means to closed windows.

A partial is what one batch knows about one device in one window. Partials of the same device and window merge by
adding counts and sums; sums are integers (millionths of the unit, times the count), so any way of cutting the same
readings into batches, nodes and moves gives the same result to the last bit.
"""

import pyarrow as pa
import pyarrow.compute as pc

_STAMP = pa.timestamp("us", tz="UTC")
_SUM = pa.decimal128(38, 0)

MEANS = pa.schema(
    [
        pa.field("slice", pa.int32(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("window_start", _STAMP, nullable=False),
        pa.field("window_s", pa.int32(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("sum_micro", _SUM, nullable=False),
        pa.field("min", pa.float64(), nullable=False),
        pa.field("max", pa.float64(), nullable=False),
        pa.field("first", _STAMP, nullable=False),
        pa.field("last", _STAMP, nullable=False),
        # When the newest of them arrived: what a clock that is ahead cannot outrun.
        pa.field("arrived", _STAMP, nullable=False),
        # How many of the count came without an identity and may therefore be counted twice.
        pa.field("unidentified", pa.int64(), nullable=False),
    ]
)
# What means are made of. Readings may have 64 KiB more, which nobody needs for this.
SUMMED = ["slice", "device", "identified", "time", "value", "count", "min", "max", "first", "last", "arrived"]
_MERGE = [
    ("count", "sum"),
    ("sum_micro", "sum"),
    ("min", "min"),
    ("max", "max"),
    ("first", "min"),
    ("last", "max"),
    ("arrived", "max"),
    ("unidentified", "sum"),
]


def partials(readings: pa.Table, window_s: int) -> pa.Table:
    """One row per (slice, device, window) of these readings."""
    width = window_s * 1_000_000
    micros = readings["time"].cast(pa.int64())
    starts = pc.multiply(pc.divide(micros, width), width).cast(_STAMP)
    value_micro = pc.round(pc.multiply(readings["value"], 1e6)).cast(pa.int64()).cast(pa.decimal128(19, 0))
    weighted = pc.multiply(value_micro, readings["count"].cast(pa.int32()).cast(pa.decimal128(10, 0))).cast(_SUM)
    rows = pa.table(
        {
            "slice": readings["slice"],
            "device": readings["device"],
            "window_start": starts,
            "count": readings["count"],
            "sum_micro": weighted,
            "min": pc.coalesce(readings["min"], readings["value"]),
            "max": pc.coalesce(readings["max"], readings["value"]),
            "first": pc.coalesce(readings["first"], readings["time"]),
            "last": pc.coalesce(readings["last"], readings["time"]),
            "arrived": readings["arrived"],
            "unidentified": pc.if_else(readings["identified"], pa.scalar(0, pa.int64()), readings["count"]),
        }
    )
    return _merged(rows, ["slice", "device", "window_start"], window_s)


def _merged(rows: pa.Table, keys: list[str], window_s: int) -> pa.Table:
    grouped = rows.group_by(keys, use_threads=False).aggregate(_MERGE)
    renamed = grouped.rename_columns({f"{name}_{how}": name for name, how in _MERGE})
    width = pa.array([window_s], pa.int32()).take(pa.array([0] * len(renamed), pa.int64()))
    return renamed.append_column("window_s", width).select(MEANS.names).cast(MEANS)


def merge(parts: pa.Table, window_s: int) -> pa.Table:
    """All partials of a device and window as one row, in a fixed order."""
    mine = parts.filter(pc.equal(parts["window_s"], window_s)).drop(["window_s"])
    merged = _merged(mine, ["slice", "device", "window_start"], window_s)
    return merged.sort_by([("device", "ascending"), ("window_start", "ascending"), ("slice", "ascending")])


def closed(parts: pa.Table, window_s: int, lateness_s: float = 0.0) -> pa.Table:
    """Merged windows that no reading in order can change any more, with their mean.

    A slice's watermark is the latest time any of its devices has reported, but not later than that report arrived: one
    clock in the future must not close the windows of all. A window is closed once the watermark of its own slice is
    past its end and the allowed lateness: a silent slice keeps only its own windows open.
    """
    merged = merge(parts, window_s)
    earlier_us = pc.min_element_wise(merged["last"].cast(pa.int64()), merged["arrived"].cast(pa.int64()))
    seen = pa.table({"slice": merged["slice"], "us": earlier_us})
    marks = seen.group_by("slice").aggregate([("us", "max")]).rename_columns({"us_max": "watermark"})
    joined = merged.join(marks, "slice")
    end_us = pc.add(joined["window_start"].cast(pa.int64()), int((window_s + lateness_s) * 1e6))
    done = joined.filter(pc.less_equal(end_us, joined["watermark"])).drop(["watermark"])
    mean = pc.divide(pc.divide(done["sum_micro"].cast(pa.float64()), done["count"].cast(pa.float64())), 1e6)
    in_order = done.append_column("mean", mean)
    return in_order.sort_by([("device", "ascending"), ("window_start", "ascending")])
