"""Readings that say who really sent them, and where they got to: to a subscriber, into the log."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.brokers.port import SliceRange
from tidegate.model.installation import Installation
from tidegate_bench.identity.cells import NATS, Cell
from tidegate_bench.identity.client import Message
from tidegate_bench.identity.judging import HEARD, LOG, RETAINED, Arrival


def reading(cell: Cell, sequence: int = 0) -> bytes:
    """A whole one, so that tables would take it. What it says beyond a reading's fields has no column there."""
    said = {"boot": 1, "seq": 10 * cell.number + sequence, "value": 1.0, "sender": cell.sender, "cell": cell.number}
    return json.dumps(said).encode()


def arrivals_of(broker: str, messages: Iterable[Message]) -> Iterator[Arrival]:
    """What a subscriber heard, without what no cell has sent."""
    for message in messages:
        found = _arrival(RETAINED if message.retained else HEARD, broker, message.topic, message.payload)
        if found is not None:
            yield found


def arrivals_in_log(installation: Installation) -> Iterator[Arrival]:
    """Everything in every slice."""
    with closing(open_log(address_of_log(installation), name="tidegate-bench")) as log:
        spans = log.spans(range(installation.slices))
        wanted = [SliceRange(number, span.first - 1, span.last) for number, span in spans.items()]
        for rows in log.read([one for one in wanted if one.last > one.after]):
            for topic, payload in zip(rows.topics.to_pylist(), rows.payloads.to_pylist(), strict=True):
                found = _arrival(LOG, NATS, topic, payload)
                if found is not None:
                    yield found


def _arrival(where: str, broker: str, topic: str, payload: bytes) -> Arrival | None:
    try:
        said = json.loads(payload)
        return Arrival(where=where, broker=broker, topic=topic, sender=said["sender"], cell=said["cell"])
    except (ValueError, KeyError, TypeError):
        return None
