"""A read that comes to a message which one broker's copy lacks goes on with another's."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tidegate.brokers.nats import fetch
from tidegate.brokers.nats.adapter import NatsLog
from tidegate.brokers.port import Rows, SliceRange
from tidegate.bus.wire import Wire
from tidegate.model.errors import SequenceGapError
from tidegate.model.installation import LogAddress

WANTED = [SliceRange(0, 4, 8), SliceRange(1, 0, 2)]


def rows(slice_: int, first: int, last: int) -> Rows:
    some = pa.array([b""] * (last - first + 1))
    return Rows(slice_, first, some, some, some)


def read(monkeypatch: pytest.MonkeyPatch, brokers: int, damaged: int) -> list[tuple[int, int]]:
    """What comes of both ranges where the first so many brokers have no message 7 of slice 0: slice and sequence."""
    asked: list[list[SliceRange]] = []

    def fetched(_: Wire, wanted: list[SliceRange]) -> Iterator[Rows]:
        asked.append(wanted)
        for slice_, after, last in wanted:
            if slice_ == 0 and after < 7 <= last and len(asked) <= damaged:
                if after < 6:
                    yield rows(0, after + 1, 6)
                raise SequenceGapError("Slice 0 has no message 7.")
            if last > after:
                yield rows(slice_, after + 1, last)

    monkeypatch.setattr(fetch, "fetch", fetched)
    address = LogAddress("nats", tuple(f"nats://127.0.0.1:{port}" for port in range(1, brokers + 1)), 2)
    log = NatsLog(address, "test", 1.0)
    return [(one.slice, one.first + at) for one in log.read(WANTED) for at in range(len(one.payloads))]


@pytest.mark.parametrize(("brokers", "damaged"), [(1, 0), (3, 1), (3, 2)])
def test_every_message_comes_once(monkeypatch: pytest.MonkeyPatch, brokers: int, damaged: int) -> None:
    assert read(monkeypatch, brokers, damaged) == [(0, 5), (0, 6), (0, 7), (0, 8), (1, 1), (1, 2)]


@pytest.mark.parametrize("brokers", [1, 3])
def test_one_that_no_broker_delivers_is_an_error(monkeypatch: pytest.MonkeyPatch, brokers: int) -> None:
    with pytest.raises(SequenceGapError, match="no message 7"):
        read(monkeypatch, brokers, damaged=brokers)
