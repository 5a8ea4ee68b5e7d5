"""How far a read of one slice has got, and what both ways of reading need: gaps, control frames, silence."""

import json
import re
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.brokers.nats.bulk import Columns
from tidegate.brokers.nats.topics import topics_of
from tidegate.brokers.port import Rows
from tidegate.bus.wire import FRAME, Wire
from tidegate.model.errors import BrokerUnavailableError, SequenceGapError

STALL_S = 10.0
# Rows are handed on when a read has so many of a slice, or so many bytes of all its slices: a payload may have 64 KiB.
CHUNK_ROWS = 32_768
CHUNK_BYTES = 16 << 20


@dataclass(slots=True)
class Cursor:
    """How far one slice of this read has got, and the rows of it not yet handed on."""

    slice: int
    next: int
    last: int
    asked: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    _columns: list[Columns] = field(default_factory=list)
    _rows: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.next > self.last

    @property
    def stream(self) -> str:
        return f"SLICE_{self.slice}"

    def add(self, subject: bytes, stamp: bytes, payload: bytes) -> None:
        self._rows.append((subject, stamp, payload))
        self.next += 1
        self.waiting += 1
        self.waiting_bytes += len(subject) + len(payload)

    def add_run(self, run: Columns) -> None:
        wanted = max(0, min(len(run.payloads), self.last - self.next + 1))
        self._gather()
        mine = Columns(*(column.slice(0, wanted) for column in run))
        self._columns.append(mine)
        self.next += wanted
        self.waiting += wanted
        self.waiting_bytes += mine.subjects.nbytes + mine.payloads.nbytes

    def _gather(self) -> None:
        if self._rows:
            self._columns.append(_columns(self._rows))
            self._rows = []

    def taken(self) -> Rows:
        self._gather()
        subjects, stamps, payloads = _joined(self._columns)
        rows = Rows(self.slice, self.next - self.waiting, topics_of(subjects), stamps, payloads)
        self._columns, self.waiting, self.waiting_bytes = [], 0, 0
        return rows


def _columns(rows: list[tuple[bytes, bytes, bytes]]) -> Columns:
    """Rows taken one by one. Their stamps are RFC 3339 (direct get) or nanoseconds (push), as the server sent them."""
    subjects, texts, payloads = zip(*rows, strict=True)
    stamps = pa.array(texts, pa.binary()).cast(pa.string())
    if b"T" in texts[0]:
        stamps = stamps.cast(pa.timestamp("ns", tz="UTC"))
    return Columns(pa.array(subjects, pa.binary()), stamps.cast(pa.int64()), pa.array(payloads, pa.binary()))


def _joined(parts: list[Columns]) -> Columns:
    return parts[0] if len(parts) == 1 else Columns(*(pa.concat_arrays(column) for column in zip(*parts, strict=True)))


def gap(cursor: Cursor, found: int) -> SequenceGapError:
    return SequenceGapError(
        f"Slice {cursor.slice} has no message {cursor.next}: the log goes on at {found}. Messages below a committed "
        f"offset may be purged, others not: check what removed them from stream {cursor.stream}.",
        where=f"slice {cursor.slice}",
        expected=cursor.next,
        found=found,
    )


def stalled(cursor: Cursor) -> BrokerUnavailableError:
    """Whoever looks into it finds in the error which message does not come."""
    return BrokerUnavailableError(
        f"{cursor.stream} has not delivered message {cursor.next} of {cursor.last} for {STALL_S:.0f} s: its replicas "
        "may be catching up.",
        where=f"slice {cursor.slice}",
        expected=cursor.next,
    )


def pass_over(wire: Wire, data: bytes, position: int) -> tuple[int, bool]:
    """Handle a frame that is not a row: a control line, an API answer, flow control. True if it is not all here yet."""
    found = FRAME.match(data, position)
    if found is None:
        return position, True
    if found.group(6) is not None:
        wire.answer(found.group(6))
        return found.end(), False
    end = found.end() + int(found.group(5))
    if end + 2 > len(data):
        return position, True
    body = data[found.end() : end]
    reply = found.group(3)
    if body.startswith(b"NATS/1.0 100"):
        stalled = re.search(rb"Nats-Consumer-Stalled: ?(\S+)", body)
        answer_to = reply or (stalled.group(1) if stalled else None)
        if answer_to:
            wire.publish(answer_to.decode())
    elif body.startswith(b"{") and b'"error"' in body[:200]:
        problem = json.loads(body).get("error", {}).get("description", "unknown")
        raise BrokerUnavailableError(f"The broker refused a consumer: {problem}.")
    return end + 2, False


def take(wire: Wire, deadline: float, waiting: Cursor) -> bytes:
    """What has arrived; silence until the deadline is an error that names one who waits, not an empty answer."""
    try:
        return wire.take(deadline)
    except TimeoutError:
        wire.close()
        raise stalled(waiting) from None
