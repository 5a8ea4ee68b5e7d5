"""Rows of the brokers' log as Arrow batches with the source's schema."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.brokers.port import Rows
from tidegate.model.positions import incarnation_of, position

_STAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("slice", pa.int32()),
        ("epoch", pa.int32()),
        ("offset", pa.int64()),
        ("after", pa.int64()),
        ("topic", pa.string()),
        ("arrived", _STAMP),
        ("payload", pa.binary()),
    ]
)


def record_batch(rows: Rows, epoch: int, after: int) -> pa.RecordBatch:
    """Rows of the log as rows of the source. Their positions are in the incarnation of ``after``."""
    count = len(rows.payloads)
    first = position(incarnation_of(after), rows.first)
    columns = [
        pa.repeat(pa.scalar(rows.slice, pa.int32()), count),
        pa.repeat(pa.scalar(epoch, pa.int32()), count),
        pa.array(np.arange(first, first + count, dtype=np.int64)),
        pa.repeat(pa.scalar(after, pa.int64()), count),
        rows.topics,
        pc.divide(rows.stamps_ns, 1000).cast(_STAMP),
        rows.payloads,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
