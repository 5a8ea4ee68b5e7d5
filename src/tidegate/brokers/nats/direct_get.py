"""Reading few messages: *direct get* is stateless, answers at once and leaves nothing behind."""

import json
import re
import time
from collections.abc import Iterator

from tidegate.brokers.nats.cursor import CHUNK_BYTES, CHUNK_ROWS, STALL_S, Cursor, gap, pass_over, stalled, take
from tidegate.brokers.port import Rows
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

REQUEST_ROWS = 8_192
REQUEST_BYTES = 4 << 20
# All slices are asked at once. More than this under way, and the server gives the connection up (at 64 MiB).
REQUESTED_BYTES_MAX = 32 << 20

_DIRECT = re.compile(rb"HMSG (\S+) 1 (\d+) (\d+)\r\n")


def fetch_direct(wire: Wire, cursors: list[Cursor]) -> Iterator[Rows]:
    by_inbox: dict[bytes, Cursor] = {}
    bytes_each = min(REQUEST_BYTES, REQUESTED_BYTES_MAX // len(cursors))
    for cursor in cursors:
        _ask(wire, cursor, by_inbox, bytes_each)
    deadline = time.monotonic() + STALL_S
    while by_inbox:
        data = take(wire, deadline, next(iter(by_inbox.values())))
        used, ended = _scan_direct(wire, data, by_inbox)
        wire.keep(data[used:])
        for inbox in ended:
            cursor = by_inbox.pop(inbox)
            if cursor.next > cursor.asked:
                deadline = time.monotonic() + STALL_S
            if not cursor.done:
                if cursor.next == cursor.asked:
                    _check_stalled(wire, cursor, deadline)
                _ask(wire, cursor, by_inbox, bytes_each)
            has_enough = cursor.waiting >= CHUNK_ROWS or sum(one.waiting_bytes for one in cursors) >= CHUNK_BYTES
            if cursor.done or (cursor.waiting and has_enough):
                yield cursor.taken()


def _ask(wire: Wire, cursor: Cursor, by_inbox: dict[bytes, Cursor], bytes_max: int) -> None:
    inbox = wire.inbox()
    by_inbox[inbox.encode()] = cursor
    cursor.asked = cursor.next
    wanted = {"seq": cursor.next, "batch": min(cursor.last - cursor.next + 1, REQUEST_ROWS), "max_bytes": bytes_max}
    wire.publish(f"$JS.API.DIRECT.GET.{cursor.stream}", json.dumps(wanted).encode(), reply=inbox)


def _scan_direct(wire: Wire, data: bytes, by_inbox: dict[bytes, Cursor]) -> tuple[int, list[bytes]]:
    """Walk the whole frames in ``data``; return how many bytes they were and whose answers have ended."""
    position, size, ended = 0, len(data), []
    match = _DIRECT.match
    while position < size:
        found = match(data, position)
        if found is None:
            position, stop = pass_over(wire, data, position)
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
            raise gap(cursor, sequence)
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
        raise stalled(cursor)
    first = _first_sequence(wire, cursor)
    if first > cursor.next:
        raise gap(cursor, first)
    time.sleep(0.005)


def _first_sequence(wire: Wire, cursor: Cursor) -> int:
    with Wire(wire.urls, name="tidegate-info") as other:
        answer = json.loads(other.request(f"$JS.API.STREAM.INFO.{cursor.stream}").payload)
    if "state" not in answer:
        raise BrokerUnavailableError(f"{cursor.stream} cannot be read: {answer.get('error', {}).get('description')}.")
    return int(answer["state"]["first_seq"])
