"""What the brokers' log says of readings that no table has: the last place where they were seen, if it has one."""

from contextlib import closing

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.brokers.port import Rows, SlicedLog, SliceRange
from tidegate.model.errors import SequenceGapError
from tidegate.model.readings import TELEMETRY, Identified
from tidegate.model.times import clock_time
from tidegate.pipeline.completeness.pages import Open

# So many of a slice's newest messages are searched: what is committed leaves the log within seconds anyway.
SEARCHED_MAX = 20_000
_IDENTIFIED = msgspec.json.Decoder(Identified).decode


def search(log: SlicedLog, missing: list[Open]) -> None:
    """Say of each what the log has of it, in its ``seen``."""
    for slice_ in sorted({one.slice for one in missing}):
        wanted = [one for one in missing if one.slice == slice_]
        span = log.spans([slice_])[slice_]
        after = max(span.first - 1, span.last - SEARCHED_MAX)
        held = f"sequences {after + 1} to {span.last}" if span.last > after else "nothing"
        for one in wanted:
            one.seen = f"not in the log of slice {slice_}, which holds {held}"
        try:
            if span.last > after:
                with closing(log.read([SliceRange(slice_, after, span.last)])) as read:
                    for rows in read:
                        _find(rows, wanted)
        except SequenceGapError:
            for one in wanted:
                one.seen = f"the log of slice {slice_} has a gap and cannot be searched"


def _find(rows: Rows, wanted: list[Open]) -> None:
    devices = pc.list_element(pc.split_pattern(pc.binary_join_element_wise(rows.topics, "", "/"), "/"), 1)
    places = pc.indices_nonzero(pc.is_in(devices, pa.array({one.device for one in wanted}, pa.string())))
    for place in places.to_pylist():
        topic, payload = rows.topics[place].as_py(), rows.payloads[place].as_py()
        try:
            identified = _IDENTIFIED(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        for one in wanted:
            same = topic.split("/", 2)[:2] == [TELEMETRY, one.device] and identified.boot == one.boot
            if same and one.low <= identified.seq <= one.high:
                stamp_s = rows.stamps_ns[place].as_py() / 1e9
                one.seen = f"in the log of slice {one.slice} at sequence {rows.first + place}, {clock_time(stamp_s)}"
