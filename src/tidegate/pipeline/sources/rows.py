"""Rows of the brokers' log as Arrow batches with the source's schema."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.brokers.port import Rows, SlicedLog, SliceRange, Span
from tidegate.model.errors import SequenceGapError
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.tables.tables import Mark
from tidegate.pipeline.tables.writing import mark_at

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


# Stands for a message that is not in the log, though others before and behind it are.
HOLE = Mark(0, 0)


def mark_in_log(log: SlicedLog, slice_: int, place: int, span: Span) -> Mark | None:
    """The message that a slice's log has at this place, given what it holds; None where that is no place of it."""
    sequence = sequence_of(place)
    if not sequence or not span.first <= sequence <= span.last:
        return None
    if log.next_sequence(slice_, sequence) != sequence:
        return HOLE  # asked first: a read would wait long for one that is missing at the very end
    try:
        with closing(log.read([SliceRange(slice_, sequence - 1, sequence)])) as read:
            return mark_at(record_batch(next(read), 0, place), 0)
    except SequenceGapError:
        return HOLE
