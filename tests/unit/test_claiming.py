"""Taking slices up: each by itself, whatever is wrong with the others."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tidegate.brokers.port import Rows, SliceRange, Span
from tidegate.bus.documents import GAPS, Document
from tidegate.bus.key_value import Entry
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.gaps import Gaps
from tidegate.model.positions import position
from tidegate.pipeline.sources import claiming
from tidegate.pipeline.sources.claiming import Claims
from tidegate.pipeline.tables.tables import Mark, Step, Tables

MANY = 64


class Log:
    """It holds nothing that was read, and does not answer for some slices."""

    def __init__(self, silent: Iterable[int] = ()) -> None:
        self.silent = set(silent)

    def next_sequence(self, slice_: int, sequence: int) -> int | None:
        if slice_ in self.silent:
            raise BrokerUnavailableError("no answer.")
        return sequence

    def read(self, wanted: Sequence[SliceRange]) -> Generator[Rows, None, None]:
        raise AssertionError("No slice here has a message at its place: nothing is to be read.")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Claiming needs no {name!r} of the log.")


class Papers:
    """The document of gaps on a bus, as bytes."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content

    def get(self, document: Document[Any]) -> Any:
        return None if self.content is None else document.decode(self.content)

    def entry(self, _: Document[Any]) -> Entry | None:
        return None if self.content is None else Entry(self.content, 1, 0.0)

    def put(self, document: Document[Any], value: Any, *, revision: int | None = None) -> int:
        assert revision == (self.content is not None)
        self.content = document.encode(value)
        return 1

    def change(self, document: Document[Any], step: Callable[[Any], Any]) -> None:
        self.content = document.encode(step(self.get(document)))


def read_up_to(directory: Path, places: Mapping[int, int]) -> Tables:
    """Tables that have these slices up to there, each with the mark of a message."""
    tables = Tables(directory)
    tables.claim(dict.fromkeys(places, 1))
    tables.readings.commit([], {s: Step(1, 0, to) for s, to in places.items()}, dict.fromkeys(places, Mark(5, 5)))
    return tables


def claims(tables: Tables, log: Log, bus: Papers) -> Claims:
    tables.readings.refresh()
    return Claims("node-1", log, bus, tables)  # type: ignore[arg-type] - all of it that is used


def test_all_slices_that_are_shorter_wait_at_the_same_time_and_others_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "SHORTER_S_MAX", 1.0)
    monkeypatch.setattr(claiming, "SHORTER_POLL_S", 0.1)
    tables, bus = read_up_to(tmp_path, dict.fromkeys(range(MANY), 100)), Papers()
    claimed, spans = claims(tables, Log(), bus), dict.fromkeys(range(MANY), Span(1, 0))
    spans[7] = Span(101, 100)  # purged up to where it was read
    wanted = dict.fromkeys(range(MANY), 2)
    began_s = time.monotonic()
    assert claimed.claim(wanted, spans) == {7: 100}
    del wanted[7]
    found: dict[int, int] = {}
    while len(found) < len(wanted):
        found |= claimed.claim({slice_: epoch for slice_, epoch in wanted.items() if slice_ not in found}, spans)
        time.sleep(0.05)
    assert found == dict.fromkeys(wanted, position(1, 0))
    assert 1.0 <= time.monotonic() - began_s < 10.0
    assert len(GAPS.decode(bus.content or b"").open) == MANY - 1


def test_a_log_that_is_only_late_is_not_read_anew(tmp_path: Path) -> None:
    bus = Papers()
    claimed = claims(read_up_to(tmp_path, {0: 100}), Log(), bus)
    assert claimed.claim({0: 2}, {0: Span(1, 60)}) == {}
    claimed._ask_at_s.clear()
    assert claimed.claim({0: 2}, {0: Span(101, 100)}) == {0: 100}
    assert bus.content is None


def test_a_slice_that_cannot_be_judged_is_named_and_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "AGAIN_S", 0.0)
    log = Log(silent=[0])
    claimed = claims(read_up_to(tmp_path, {0: 10, 1: 10}), log, Papers())
    spans = {0: Span(1, 20), 1: Span(11, 20)}
    assert claimed.claim({0: 2, 1: 2}, spans) == {1: 10}
    assert claimed.sentences() == ["Slice 0 cannot be taken up, and is tried again: no answer."]
    log.silent.clear()
    assert claimed.claim({0: 2}, {0: Span(11, 20)}) == {0: 10}
    assert claimed.sentences() == []


def test_a_damaged_document_of_gaps_is_replaced_and_its_words_are_kept(tmp_path: Path) -> None:
    bus = Papers(b'{"open":[{"slice":"x"}]}')
    with pytest.raises(DamagedDocumentError):
        bus.get(GAPS)
    claimed = claims(read_up_to(tmp_path, {0: 10, 1: 10}), Log(), bus)
    assert claimed.claim({0: 2, 1: 2}, {0: Span(15, 20), 1: Span(11, 20)}) == {0: 14, 1: 10}
    assert [(gap.slice, gap.kind) for gap in GAPS.decode(bus.content or b"").open] == [(0, "deleted")]
    assert ['"slice":"x"' in sentence for sentence in claimed.sentences()] == [True]


def test_a_hole_that_is_certain_is_passed_and_noted(tmp_path: Path) -> None:
    class Holed(Log):
        def next_sequence(self, _: int, sequence: int) -> int | None:
            return 14 if 11 <= sequence <= 14 else sequence

    bus = Papers()
    tables = read_up_to(tmp_path, {0: 10})
    claimed = claims(tables, Holed(), bus)
    claimed.pass_hole(0, 10, 14)
    assert claimed.claim({0: 2}, {0: Span(11, 20)}) == {0: 13}
    assert not claimed.is_proven(0, 13)
    assert (tables.readings.position(0).offset, tables.readings.mark(0)) == (13, None)
    (gap,) = GAPS.decode(bus.content or b"").open
    assert (gap.kind, gap.missing) == ("missing", 3)


def test_a_hole_is_not_passed_where_the_message_has_come_back(tmp_path: Path) -> None:
    bus = Papers(GAPS.encode(Gaps()))
    claimed = claims(read_up_to(tmp_path, {0: 10}), Log(), bus)
    claimed.pass_hole(0, 10, 14)
    assert claimed.claim({0: 2}, {0: Span(11, 20)}) == {0: 10}
    assert bus.get(GAPS) == Gaps()
