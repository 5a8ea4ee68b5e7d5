"""Reading a backlog: a *push consumer* with flow control costs two round trips to make and then streams faster."""

import json
import re
import secrets
import time
from collections.abc import Iterator

from tidegate.brokers.nats import bulk
from tidegate.brokers.nats.cursor import CHUNK_BYTES, CHUNK_ROWS, STALL_S, Cursor, gap, pass_over, take
from tidegate.brokers.port import Rows
from tidegate.bus.wire import Wire

_PUSHED = re.compile(rb"H?MSG (\S+) 2 \$JS\.ACK\.\S+\.(\d+)\.\d+\.(\d+)\.\d+ (?:(\d+) )?(\d+)\r\n")


def fetch_pushed(wire: Wire, cursor: Cursor) -> Iterator[Rows]:
    """One consumer at a time: flow control lets 32 MiB be under way, and two of those could exceed what the server
    holds back for one connection before it gives the connection up.
    """
    with Wire(wire.urls, name="tidegate-push") as pushed:
        _subscribe(pushed, cursor)
        begin = cursor.next
        deadline = time.monotonic() + STALL_S
        while not cursor.done:
            data = take(pushed, deadline, cursor)
            before = cursor.next
            proven = _scan_runs(pushed, data, cursor, begin)
            used = _scan_pushed(pushed, data, cursor, proven)
            pushed.keep(data[used:])
            if cursor.next > before:
                deadline = time.monotonic() + STALL_S
            if cursor.done or cursor.waiting >= CHUNK_ROWS or cursor.waiting_bytes >= CHUNK_BYTES:
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
        if control < 0 or _PUSHED.match(data, position):
            break  # the text stands in a row's payload: rows are walked one by one
        position, stop = pass_over(wire, data, position)
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
            position, stop = pass_over(wire, data, position)
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
            raise gap(cursor, sequence)
        cursor.add(subject, stamp, data[start + int(header_length or 0) : end])
    return position
