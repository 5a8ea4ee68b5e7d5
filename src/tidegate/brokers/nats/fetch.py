"""Reading ranges of slices from JetStream in bulk, over one raw connection.

Two ways, chosen by how much there is to read. *Direct get* is stateless, answers at once and leaves nothing behind:
right for the few messages of a small batch. A *push consumer* with flow control costs two round trips to make and
then streams faster: right for a backlog. Both go through the bytes by the lengths the server announces, so no payload
can pass for protocol, and both insist on dense sequences: a range is delivered whole or the read fails.
"""

from collections.abc import Iterator, Sequence

from tidegate.brokers.nats.cursor import Cursor
from tidegate.brokers.nats.direct_get import fetch_direct
from tidegate.brokers.nats.push_consumer import fetch_pushed
from tidegate.brokers.port import Rows, SliceRange
from tidegate.bus.wire import Wire

BACKLOG_ROWS = 20_000


def fetch(wire: Wire, ranges: Sequence[SliceRange]) -> Iterator[Rows]:
    """Every message of every (slice, after, last], in order within a slice. Raises rather than skip one."""
    few = [Cursor(s, after + 1, last) for s, after, last in ranges if 0 < last - after <= BACKLOG_ROWS]
    many = [Cursor(s, after + 1, last) for s, after, last in ranges if last - after > BACKLOG_ROWS]
    if few:
        yield from fetch_direct(wire, few)
    for cursor in many:
        yield from fetch_pushed(wire, cursor)
