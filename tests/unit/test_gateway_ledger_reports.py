"""Reports of what was acknowledged: in parts, kept while the bus is away, given up only where there is no room."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidegate.bus.documents import LEDGER, Journal
from tidegate.gateway import ledger_reports
from tidegate.gateway.connection.noting import Noted
from tidegate.gateway.ledger_reports import PART_RUNS_MAX, LedgerReports
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.counting import Counters
from tidegate.model.errors import BrokerUnavailableError, TooLargeError
from tidegate.model.ledger import LedgerReport


class Bus:
    """Takes records, unless it is away, or takes them and does not answer."""

    def __init__(self) -> None:
        self.away = False
        self.answers = True
        self.bytes_max = 1024**2
        self.created = 0
        self.records: dict[str, LedgerReport] = {}

    async def create(self, journal: Journal[Any]) -> None:
        assert journal is LEDGER
        if self.away:
            raise BrokerUnavailableError("away")
        self.created += 1

    async def append(self, journal: Journal[Any], record: Any, name: str, identity: str) -> None:
        assert (journal, name) == (LEDGER, "g-1")
        if self.away:
            raise BrokerUnavailableError("away")
        if len(msgspec.json.encode(record)) > self.bytes_max:
            raise TooLargeError("too large")
        self.records.setdefault(identity, record)
        if not self.answers:
            raise BrokerUnavailableError("no answer")

    def told(self) -> dict[str, set[tuple[int, int]]]:
        found: dict[str, set[tuple[int, int]]] = {}
        for report in self.records.values():
            for device, runs in report.devices:
                found.setdefault(device, set()).update((b, s) for b, low, high in runs for s in range(low, high + 1))
        return found


class Stand:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.bus = Bus()
        self.noted = Noted()
        self.reports = LedgerReports(self.noted, self.bus, gateway="g-1", process=2, clock=lambda: self.now_s)

    def acknowledge(self, device: str, *sequences: int) -> None:
        for seq in sequences:
            self.noted.acknowledge(f"telemetry/{device}".encode(), b'{"boot":1,"seq":%d}' % seq)

    def report(self) -> None:
        asyncio.run(self.reports.report())

    def cells(self) -> tuple[int, int]:
        counters = Counters()
        self.reports.tell(counters)
        return counters.cells[layout.REPORTED], counters.cells[layout.UNWATCHED]


def test_a_report_says_who_was_told_what_and_how_long_ago() -> None:
    stand = Stand()
    stand.acknowledge("a", 1, 2, 3, 3)
    stand.acknowledge("b", 7)
    stand.noted.acknowledge(b"telemetry/b", b"{}")
    stand.now_s += 10
    stand.report()
    (report,) = stand.bus.records.values()
    assert (report.gateway, report.process, report.oldest_s, report.newest_s) == ("g-1", 2, 10.0, 0.0)
    assert (report.nameless, report.unwatched) == (1, 0)
    assert report.devices == (("a", ((1, 1, 3),)), ("b", ((1, 7, 7),)))
    assert stand.cells() == (5, 0), "a repeat was noted, so it is told for"


def test_nothing_is_said_where_nothing_was_acknowledged() -> None:
    stand = Stand()
    stand.report()
    assert (stand.bus.records, stand.bus.created) == ({}, 0)


def test_while_the_bus_is_away_reports_are_kept_and_their_ages_grow() -> None:
    stand = Stand()
    stand.bus.away = True
    stand.acknowledge("a", 1)
    stand.now_s += 10
    stand.report()
    stand.acknowledge("a", 2)
    stand.now_s += 10
    stand.report()
    assert stand.cells() == (0, 0)
    stand.bus.away = False
    stand.report()
    assert [(one.oldest_s, one.newest_s) for one in stand.bus.records.values()] == [(20.0, 10.0), (10.0, 0.0)]
    assert stand.bus.told() == {"a": {(1, 1), (1, 2)}}
    assert stand.cells() == (2, 0)


def test_a_record_whose_answer_was_lost_is_the_same_record_when_it_is_tried_again() -> None:
    stand = Stand()
    stand.acknowledge("a", 1)
    stand.bus.answers = False
    stand.report()
    stand.bus.answers = True
    stand.report()
    assert len(stand.bus.records) == 1
    assert stand.bus.created == 2, "a bus that did not answer may have come back empty"


@pytest.mark.parametrize("devices", [1, 3, 5_000])
def test_a_report_of_many_comes_in_parts_that_say_everything_once(devices: int) -> None:
    stand = Stand()
    sequences = range(0, 2 * (10_000 // devices), 2)
    for device in range(devices):
        stand.acknowledge(f"d-{device}", *sequences)
    stand.report()
    reports = list(stand.bus.records.values())
    assert len(reports) >= 5
    assert all(sum(len(runs) for _, runs in one.devices) <= PART_RUNS_MAX for one in reports)
    assert stand.bus.told() == {f"d-{device}": {(1, seq) for seq in sequences} for device in range(devices)}
    assert stand.cells() == (devices * len(sequences), 0)


def test_what_finds_no_room_is_given_up_oldest_first_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_reports, "KEPT_RUNS_MAX", 5)
    stand = Stand()
    stand.bus.away = True
    for seq in (1, 3, 5):
        stand.acknowledge("a", seq, seq + 1, seq)
        stand.report()
    assert stand.cells() == (3, 2), "three were noted, two readings"
    stand.bus.away = False
    stand.report()
    assert stand.bus.told() == {"a": {(1, 3), (1, 4), (1, 5), (1, 6)}}
    assert sum(one.unwatched for one in stand.bus.records.values()) == 2
    assert stand.cells() == (9, 2)


def test_the_last_report_does_not_wait_for_a_bus_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_reports, "LAST_S_MAX", 0.01)
    stand = Stand()

    async def hang(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(stand.bus, "append", hang)
    stand.acknowledge("a", 1)
    asyncio.run(stand.reports.finish())
    assert stand.cells() == (0, 0)


@pytest.mark.parametrize("runs", [1, 2_000])
@pytest.mark.parametrize(("devices", "name"), [(64, "\x07" * 4_000), (3, "\x07" * 65_000), (64, "é" * 4_000)])
def test_every_part_is_smaller_than_what_the_bus_takes_however_names_are_written(
    devices: int, name: str, runs: int
) -> None:
    stand = Stand()
    for device in range(devices):
        stand.acknowledge(f"{device:02d}{name}", *range(0, 2 * runs, 2))
    stand.report()
    sizes = [len(msgspec.json.encode(one)) for one in stand.bus.records.values()]
    assert max(sizes) < 1024**2 * 0.6
    assert len(stand.bus.told()) == devices
    assert stand.cells() == (devices * runs, 0)


def test_a_part_that_the_bus_never_takes_is_given_up_and_holds_nothing_up() -> None:
    stand = Stand()
    stand.bus.bytes_max = 1_000
    stand.acknowledge("n" * 2_000, 1, 2, 3)
    stand.noted.acknowledge(b"telemetry/b", b"{}")
    stand.report()
    assert stand.cells() == (3, 3)
    stand.acknowledge("a", 1)
    stand.report()
    assert stand.bus.told() == {"a": {(1, 1)}}
    assert [(one.nameless, one.unwatched) for one in stand.bus.records.values()] == [(1, 3)]
    assert stand.cells() == (4, 3)


def test_a_device_whose_name_cannot_be_written_down_is_unwatched() -> None:
    stand = Stand()
    stand.noted.acknowledge(b"telemetry/\xff", b'{"boot":1,"seq":1}')
    stand.acknowledge("a", 1)
    stand.report()
    assert stand.bus.told() == {"a": {(1, 1)}}
    assert sum(one.unwatched for one in stand.bus.records.values()) == 1
    assert stand.cells() == (2, 1)


def test_reports_that_wait_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_reports, "KEPT_BYTES_MAX", 1024**2)
    stand = Stand()
    stand.bus.away = True
    for number in range(100):
        stand.acknowledge(f"{number:03d}" + "n" * 60_000, 1)
        stand.report()
    assert sum(len(device) for part in stand.reports._kept for device, _ in part.devices) < 1024**2
    assert stand.cells()[1] > 80
    stand.bus.away = False
    stand.acknowledge("a", 1)
    stand.report()
    told = stand.bus.told()
    assert len(told) == 101 - stand.cells()[1]
    assert "099" + "n" * 60_000 in told, "the newest are kept"


def test_for_how_long_something_is_not_reported_is_told() -> None:
    stand = Stand()

    def unreported_s() -> int:
        counters = Counters()
        stand.reports.tell(counters)
        return counters.cells[layout.UNREPORTED_S]

    stand.now_s += 500
    assert unreported_s() == 0
    stand.report()
    stand.acknowledge("a", 1)
    stand.now_s += 7
    assert unreported_s() == 7, "whether or not somebody still reports"
    stand.bus.away = True
    stand.report()
    stand.now_s += 60
    stand.acknowledge("a", 2)
    stand.report()
    assert unreported_s() == 67
    stand.bus.away = False
    stand.report()
    assert unreported_s() == 0
