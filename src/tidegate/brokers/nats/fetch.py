"""Reading ranges of slices from JetStream in bulk, over one raw connection.

Two ways, chosen by how much there is to read. *Direct get* is stateless, answers at once and leaves nothing behind:
right for the few messages of a small batch. A *push consumer* with flow control costs two round trips to make and
then streams faster: right for a backlog. Both go through the bytes by the lengths the server announces, so no payload
can pass for protocol, and both insist on dense sequences: a range is delivered whole or the read fails.
"""

import json
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.brokers.nats import bulk
from tidegate.brokers.nats.bulk import Columns
from tidegate.brokers.nats.topics import topics_of
from tidegate.brokers.port import Rows, SliceRange
from tidegate.bus.wire import FRAME, Wire
from tidegate.model.errors import BrokerUnavailableError, SequenceGapError

BACKLOG_ROWS = 20_000
CHUNK_ROWS = 32_768
REQUEST_ROWS = 8_192
REQUEST_BYTES = 4 << 20
STALL_S = 10.0

_DIRECT = re.compile(rb"HMSG (\S+) 1 (\d+) (\d+)\r\n")
_PUSHED = re.compile(rb"H?MSG (\S+) 2 \$JS\.ACK\.\S+\.(\d+)\.\d+\.(\d+)\.\d+ (?:(\d+) )?(\d+)\r\n")


@dataclass(slots=True)
class Cursor:
    """How far one slice of this read has got, and the rows of it not yet handed on."""

    slice: int
    next: int
    last: int
    asked: int = 0
    waiting: int = 0
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

    def add_run(self, run: Columns) -> None:
        wanted = max(0, min(len(run.payloads), self.last - self.next + 1))
        self._gather()
        self._columns.append(Columns(*(column.slice(0, wanted) for column in run)))
        self.next += wanted
        self.waiting += wanted

    def _gather(self) -> None:
        if self._rows:
            self._columns.append(_columns(self._rows))
            self._rows = []

    def taken(self) -> Rows:
        self._gather()
        subjects, stamps, payloads = _joined(self._columns)
        rows = Rows(self.slice, self.next - self.waiting, topics_of(subjects), stamps, payloads)
        self._columns, self.waiting = [], 0
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


def fetch(wire: Wire, ranges: Sequence[SliceRange]) -> Iterator[Rows]:
    """Every message of every (slice, after, last], in order within a slice. Raises rather than skip one."""
    few = [Cursor(s, after + 1, last) for s, after, last in ranges if 0 < last - after <= BACKLOG_ROWS]
    many = [Cursor(s, after + 1, last) for s, after, last in ranges if last - after > BACKLOG_ROWS]
    if few:
        yield from _fetch_direct(wire, few)
    for cursor in many:
        yield from _fetch_pushed(wire, cursor)


def _gap(cursor: Cursor, found: int) -> SequenceGapError:
    return SequenceGapError(
        f"Slice {cursor.slice} has no message {cursor.next}: the log goes on at {found}. Messages below a committed "
        f"offset may be purged, others not: check what removed them from stream {cursor.stream}.",
        where=cursor.stream,
        expected=cursor.next,
        found=found,
    )


# -- direct get


def _fetch_direct(wire: Wire, cursors: list[Cursor]) -> Iterator[Rows]:
    by_inbox: dict[bytes, Cursor] = {}
    for cursor in cursors:
        _ask(wire, cursor, by_inbox)
    deadline = time.monotonic() + STALL_S
    while by_inbox:
        data = _take(wire, deadline)
        used, ended = _scan_direct(wire, data, by_inbox)
        wire.keep(data[used:])
        for inbox in ended:
            cursor = by_inbox.pop(inbox)
            if cursor.next > cursor.asked:
                deadline = time.monotonic() + STALL_S
            if not cursor.done:
                if cursor.next == cursor.asked:
                    _check_stalled(wire, cursor, deadline)
                _ask(wire, cursor, by_inbox)
            if cursor.done or cursor.waiting >= CHUNK_ROWS:
                yield cursor.taken()


def _ask(wire: Wire, cursor: Cursor, by_inbox: dict[bytes, Cursor]) -> None:
    inbox = wire.inbox()
    by_inbox[inbox.encode()] = cursor
    cursor.asked = cursor.next
    wanted = {"seq": cursor.next, "batch": min(cursor.last - cursor.next + 1, REQUEST_ROWS), "max_bytes": REQUEST_BYTES}
    wire.publish(f"$JS.API.DIRECT.GET.{cursor.stream}", json.dumps(wanted).encode(), reply=inbox)


def _scan_direct(wire: Wire, data: bytes, by_inbox: dict[bytes, Cursor]) -> tuple[int, list[bytes]]:
    """Walk the whole frames in ``data``; return how many bytes they were and whose answers have ended."""
    position, size, ended = 0, len(data), []
    match = _DIRECT.match
    while position < size:
        found = match(data, position)
        if found is None:
            position, stop = _pass_over(wire, data, position)
            if stop:
                break
            continue
        inbox, header_length, length = found.groups()
        start = found.end()
        body = start + int(header_length)
        end = start + int(length)
        if end + 2 > size:
            break
        position = end + 2
        cursor = by_inbox.get(inbox)
        if cursor is None:
            continue
        lines = data[start:body].split(b"\r\n")
        if lines[0] != b"NATS/1.0":
            _check_status(cursor, lines[0])
            ended.append(inbox)
            continue
        # The server appends its own six headers, in this order, behind the message's own and before two empty lines.
        sequence = int(lines[-6][15:])
        if sequence != cursor.next:
            raise _gap(cursor, sequence)
        cursor.add(lines[-7][14:], lines[-5][17:], data[body:end])
    return position, ended


def _check_status(cursor: Cursor, line: bytes) -> None:
    """204 ends an answer, 404 means nothing at or behind that sequence yet (a replica may lag); others are errors."""
    status = line[9:12]
    if status not in (b"204", b"404", b"408"):
        raise BrokerUnavailableError(f"Reading {cursor.stream} failed: {line.decode(errors='replace')}.")


def _check_stalled(wire: Wire, cursor: Cursor, deadline: float) -> None:
    """An answer came back short. Nothing to worry about unless the log has moved past what is wanted."""
    if time.monotonic() > deadline:
        raise BrokerUnavailableError(
            f"{cursor.stream} does not deliver message {cursor.next} of {cursor.last}: its replicas may be catching up."
        )
    first = _first_sequence(wire, cursor)
    if first > cursor.next:
        raise _gap(cursor, first)
    time.sleep(0.005)


def _first_sequence(wire: Wire, cursor: Cursor) -> int:
    with Wire(wire.urls, name="tidegate-info") as other:
        answer = json.loads(other.request(f"$JS.API.STREAM.INFO.{cursor.stream}").payload)
    if "state" not in answer:
        raise BrokerUnavailableError(f"{cursor.stream} cannot be read: {answer.get('error', {}).get('description')}.")
    return int(answer["state"]["first_seq"])


# -- push


def _fetch_pushed(wire: Wire, cursor: Cursor) -> Iterator[Rows]:
    """One consumer at a time: flow control lets 32 MiB be under way, and two of those could exceed what the server
    holds back for one connection before it gives the connection up.
    """
    with Wire(wire.urls, name="tidegate-push") as pushed:
        _subscribe(pushed, cursor)
        begin = cursor.next
        deadline = time.monotonic() + STALL_S
        while not cursor.done:
            data = _take(pushed, deadline)
            before = cursor.next
            proven = _scan_runs(pushed, data, cursor, begin)
            used = _scan_pushed(pushed, data, cursor, proven)
            pushed.keep(data[used:])
            if cursor.next > before:
                deadline = time.monotonic() + STALL_S
            if cursor.done or cursor.waiting >= CHUNK_ROWS:
                yield cursor.taken()
        pushed.publish(f"$JS.API.CONSUMER.DELETE.{cursor.stream}.{_consumer(pushed, cursor)}")


def _consumer(wire: Wire, cursor: Cursor) -> str:
    return f"{wire.identity}-{cursor.slice}"


def _subscribe(wire: Wire, cursor: Cursor) -> None:
    inbox = f"_INBOX.{secrets.token_hex(11)}"
    name = _consumer(wire, cursor)
    wire.send(b"SUB %s 2\r\n" % inbox.encode())
    config = {
        "name": name,
        "deliver_subject": inbox,
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": cursor.next,
        "ack_policy": "none",
        "max_deliver": 1,
        "flow_control": True,
        "idle_heartbeat": 2_000_000_000,
        "inactive_threshold": 10_000_000_000,
        "mem_storage": True,
        "num_replicas": 1,
    }
    wanted = json.dumps({"stream_name": cursor.stream, "config": config}).encode()
    wire.publish(f"$JS.API.CONSUMER.CREATE.{cursor.stream}.{name}", wanted, reply=wire.inbox())


def _scan_runs(wire: Wire, data: bytes, cursor: Cursor, begin: int) -> int:
    """Take whole runs of rows between control frames, as far as they are plain; return how many bytes that was.

    Where a run begins and ends is looked for by its text, which a payload could contain too: a run that was cut in the
    wrong place is not proven, and is walked frame by frame.
    """
    prefix = len(f"$JS.ACK.{cursor.stream}.{_consumer(wire, cursor)}.1.")
    position = 0
    while not cursor.done:
        control = data.find(b"NATS/1.0 100", position)
        end = data.rfind(b"\r\nHMSG ", position, control if control >= 0 else len(data)) + 2
        if end > position + 1:
            run = bulk.scan(data[position:end], prefix, cursor.next, cursor.next - begin + 1)
            if run is None:
                break
            cursor.add_run(run)
            position = end
        if control < 0:
            break
        position, stop = _pass_over(wire, data, position)
        if stop:
            break
    return position


def _scan_pushed(wire: Wire, data: bytes, cursor: Cursor, position: int) -> int:
    """Walk the whole frames from ``position`` on; return where they end."""
    size = len(data)
    match = _PUSHED.match
    while position < size:
        found = match(data, position)
        if found is None:
            position, stop = _pass_over(wire, data, position)
            if stop:
                break
            continue
        subject, sequence_text, stamp, header_length, length = found.groups()
        start = found.end()
        end = start + int(length)
        if end + 2 > size:
            break
        position = end + 2
        if cursor.done:
            continue
        sequence = int(sequence_text)
        if sequence != cursor.next:
            raise _gap(cursor, sequence)
        cursor.add(subject, stamp, data[start + int(header_length or 0) : end])
    return position


# -- what both need


def _pass_over(wire: Wire, data: bytes, position: int) -> tuple[int, bool]:
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


def _take(wire: Wire, deadline: float) -> bytes:
    """What has arrived; silence until the deadline is an error, not an empty answer."""
    try:
        return wire.take(deadline)
    except TimeoutError:
        wire.close()
        raise BrokerUnavailableError(f"The broker sent nothing for {STALL_S:.0f} s in the middle of a read.") from None
