"""The check of acknowledgements cannot be blinded, starved or outgrown by what devices and gateways say."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from checking import STAMP, START_S, Stand, named, sums

from tidegate.bus.documents import COMPLETENESS, LEDGER
from tidegate.bus.journals import Ends, Record
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.ledger import CompletenessState, LedgerReport
from tidegate.pipeline.completeness import book as books
from tidegate.pipeline.completeness import recent, scanning, stored
from tidegate.pipeline.completeness.book import Book
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Recent, Run
from tidegate.pipeline.completeness.rounds import FAILS_S_MAX, Round, Sources
from tidegate.pipeline.completeness.running import CompletenessThread
from tidegate.pipeline.completeness.stored import NewRows, StoredReadings
from tidegate.pipeline.maintenance.maintainer import Maintainer
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.parsing import REJECTED

DAY_S = 86_400.0


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


# -- a device that loses everything, and tables that lag


class Lagging:
    """Journal, log and tables of one device whose readings all vanish, a hundred messages of others a second."""

    def __init__(self, lag_s: float, directory: Path) -> None:
        self.lag_s, self.now_s = lag_s, 0.0
        self.records: list[Record[LedgerReport]] = []
        sources: Any = Sources(self, self, self, directory)  # type: ignore[arg-type]
        self.round = Round(sources, START_S)

    def slice_of(self, _device: str) -> int:
        return 0

    def backlog(self, _committed: object) -> SimpleNamespace:
        last = SimpleNamespace(slice=0, last_sequence=int((self.now_s + 10_000) * 100))
        return SimpleNamespace(alarms=(), upstream_waiting=0, slices=[last])

    def spans(self, _slices: object) -> dict[int, SimpleNamespace]:
        return {0: SimpleNamespace(first=1, last=0)}

    def ends(self) -> Ends:
        return Ends(1, len(self.records), "made", START_S + self.now_s)

    def read(self, sequences: range) -> list[Record[LedgerReport]]:
        return [self.records[number - 1] for number in sequences]

    def since(self, _positions: object) -> NewRows:
        return NewRows({0: int((self.now_s + 10_000 - self.lag_s) * 100)}, [], [])

    def look_up(self, _wanted: object) -> list[Run]:
        return []

    look_up_rejected = look_up

    def damage(self) -> tuple[str, ...]:
        return ()

    def run(self, seconds: int) -> Iterator[tuple[float, CompletenessState]]:
        for _ in range(0, seconds, 5):
            if self.now_s % 10 == 0:
                low = int(self.now_s)
                self.records.append(
                    Record(
                        len(self.records) + 1,
                        START_S + self.now_s,
                        LedgerReport(
                            gateway="g", process=0, oldest_s=10, newest_s=0, devices=(("a", ((1, low, low + 9),)),)
                        ),
                    )
                )
            self.round.step(START_S + self.now_s)
            yield self.now_s, self.round.said("checker", START_S + self.now_s)
            self.now_s += 5


@pytest.mark.parametrize("lag_s", [1, 4, 7, 12, 20, 30])
def test_a_device_that_goes_on_while_all_is_lost_is_named_within_a_minute(lag_s: float, tmp_path: Path) -> None:
    first_s = next(at_s for at_s, state in Lagging(lag_s, tmp_path).run(600) if state.holes)
    assert first_s <= 60


@pytest.mark.parametrize("lag_s", [1, 20, 3_600])
def test_a_device_that_goes_on_for_hours_is_a_few_entries(lag_s: float, tmp_path: Path) -> None:
    lagging = Lagging(lag_s, tmp_path)
    entries = [len(list(lagging.round._book._entries())) for _ in lagging.run(4 * 3_600)]
    assert max(entries) <= 30
    state = lagging.round.said("checker", START_S + lagging.now_s)
    told = sum(hour.missing + hour.waiting for hour in state.hours)
    assert told == sum(hour.acknowledged for hour in state.hours) == 4 * 3_600
    assert sum(hole.readings for hole in state.holes) == sum(hour.missing for hour in state.hours)


def test_a_report_is_settled_once_all_of_it_is_known(stand: Stand) -> None:
    """Also where its readings wait in one range with those of later reports."""
    stand.publish("a", *range(1, 9))
    for low in (1, 3, 5, 7):
        stand.report("a", (1, low, low + 1))
        stand.step()
    stand.round._book.account([Run("a", 1, 1, 2)], "stored")
    assert stand.step().settled == 1


# -- what is wrong in the journal


@pytest.mark.parametrize(
    "said",
    [
        b'"oldest_s":1e300,"newest_s":0,"devices":[["a",[[1,1,1]]]]',
        b'"oldest_s":1e11,"newest_s":1e11,"devices":[["a",[[1,1,1]]]]',
        b'"oldest_s":-1e12,"newest_s":-1e12,"devices":[["a",[[1,1,1]]]]',
        b'"oldest_s":1,"newest_s":1,"devices":[["a",[[1,9,1]]]]',
        b'"oldest_s":1,"newest_s":1,"devices":[["a",[[-1,-5,-3]]]]',
        b'"oldest_s":1,"newest_s":1,"devices":[["a",[[1,0,1180591620717411303424]]]]',
        b'"oldest_s":1,"newest_s":1,"devices":[["a",[[1,0,4611686018427387904]]]]',
        b'"oldest_s":1,"newest_s":1,"nameless":-99999999999999999999999',
        b'"oldest_s":1,"newest_s":1,"unwatched":9223372036854775807',
    ],
)
def test_a_report_with_wild_numbers_counts_as_damaged(stand: Stand, said: bytes) -> None:
    stand.journal.append(LEDGER.decode(b'{"gateway":"g","process":0,' + said + b"}"))
    stand.report("b", (1, 1, 1))
    state = stand.step(3)
    assert (named(state), state.reports_lost, state.waits_for) == ([("b", 1, 1, 1)], 1, None)
    assert any(alarm.startswith("1 reports of gateways were gone or damaged") for alarm in state.alarms)
    assert COMPLETENESS.decode(COMPLETENESS.encode(state)) == state


def test_a_report_that_the_book_cannot_take_is_skipped_and_said(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledge = Book.acknowledge

    def refuse(self: Book, report: LedgerReport, number: int, taken_s: float) -> None:
        if report.nameless == 13:
            raise OverflowError("too much")
        acknowledge(self, report, number, taken_s)

    monkeypatch.setattr(Book, "acknowledge", refuse)
    stand.report("a", nameless=13)
    stand.report("b", (1, 1, 1))
    assert stand.step().waits_for == "too much"
    state = stand.step(3)
    assert (named(state), state.reports_lost, state.waits_for) == ([("b", 1, 1, 1)], 1, None)


def test_a_check_that_fails_for_a_minute_is_an_alarm(stand: Stand) -> None:
    stand.journal.away = True
    assert stand.step().alarms == ()
    stand.now_s += FAILS_S_MAX
    assert stand.step().alarms == ("What gateways acknowledged cannot be compared with the tables: The bus is away.",)
    stand.journal.away = False
    assert stand.step().alarms == ()


@pytest.mark.parametrize("error", [OverflowError("wild"), BrokerUnavailableError("wild")])
def test_the_thread_goes_on_whatever_a_step_raises_and_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOK_S", "STEP_S"):
        monkeypatch.setattr(f"tidegate.pipeline.completeness.running.{name}", 0.01)
    results: list[object] = [error, error]
    problems: list[str | None] = []

    def step(_now_s: float) -> bool:
        problems.append(thread.problem)
        if results:
            raise results.pop()  # type: ignore[misc]
        return True

    thread = CompletenessThread(SimpleNamespace(step=step, stop=lambda _now_s: None))  # type: ignore[arg-type]
    thread.start()
    until_s = time.monotonic() + 5
    while len(problems) < 4 and time.monotonic() < until_s:
        time.sleep(0.01)
    thread.stop()
    said = "What gateways acknowledged cannot be compared with the tables: wild"
    assert problems[:4] == [None, said, said, None]


def test_what_keeps_the_check_from_looking_is_an_alarm_of_the_maintainer() -> None:
    maintainer = object.__new__(Maintainer)
    said: list[str] = []
    maintainer._completeness = SimpleNamespace(problem="It cannot be.")  # type: ignore[assignment]
    maintainer._alarms, maintainer._say, maintainer._spoken_s = {}, said.append, time.monotonic()
    maintainer._clock = SimpleNamespace(steady_for=lambda _s: True)  # type: ignore[assignment]
    maintainer._speak()
    assert (list(maintainer._alarms.values()), said) == (["It cannot be."], ["ALARM: It cannot be."])
    maintainer._completeness.problem = None
    maintainer._speak()
    assert maintainer._alarms == {}


# -- names that are long


def test_the_document_is_smaller_than_what_the_bus_takes_and_says_how_many_more_there_are(stand: Stand) -> None:
    names = [f"{number:03d}" + "\x07" * 4_000 for number in range(90)]
    for name in names:
        stand.report(name, (1, 1, 1))
    state = stand.step(3)
    assert len(COMPLETENESS.encode(state)) < 600_000
    assert (len(state.holes) + state.holes_more, sums(state)[3]) == (90, 90)
    assert len(state.holes) >= 20
    (alarm,) = state.alarms
    assert len(alarm) < 1_000
    assert "\x07" not in alarm


def test_one_hole_is_told_however_long_its_name(stand: Stand) -> None:
    for letter in ("a", "b"):
        stand.report(letter + "\x07" * 65_000, (1, 1, 1))
    state = stand.step(3)
    assert (len(state.holes), state.holes_more) == (1, 1)
    assert len(COMPLETENESS.encode(state)) < 600_000


def test_what_was_stored_lately_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "BYTES_MAX", 1_000_000)
    known = Recent()
    for number in range(200):
        known.add(Run(f"{number:03d}" + "n" * 60_000, 1, 0, 0))
    assert sum(len(device) for device, _ in known._known) < 1_000_000
    assert known.without("199" + "n" * 60_000, 1, [(0, 1)]) == [(1, 1)]
    for seq in range(0, 20_000, 2):
        known.add(Run("a", seq % 50, seq, seq))
    assert known._bytes <= 1_000_000
    for key in list(known._known):
        known._forget(key)
    assert known._bytes == 0


def test_open_readings_are_bounded_in_bytes(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "OPEN_BYTES_MAX", 100_000)
    for number in range(10):
        stand.publish(f"{number}" + "n" * 50_000, 1)
        stand.report(f"{number}" + "n" * 50_000, (1, 1, 1))
    (hour,) = stand.step().hours
    assert (hour.acknowledged, hour.unwatched) == (2, 8)
    stand.commit()
    stand.step()
    assert stand.round._book._bytes == 0


# -- tables that are large


def rejects_of(directory: Path, topics: list[str], payloads: list[bytes], at_s: float = START_S) -> Tables:
    tables, count = Tables(directory), len(topics)
    tables.claim({0: 1})
    rows = pa.Table.from_arrays(
        [
            pa.repeat(pa.scalar(0, pa.int32()), count),
            pa.array(range(1, count + 1), pa.int64()),
            pa.array(topics),
            pa.repeat("not a reading", count),
            pa.array(payloads, pa.binary()),
            pa.repeat(pa.scalar(1_000, pa.int64()), count),
            pa.repeat(pa.scalar(round(at_s * 1e6), pa.int64()), count).cast(STAMP),
        ],
        schema=REJECTED,
    )
    settings = TaskSettings(directory, 60, 0.0, False)
    tables.rejected.commit(write_by_date(settings, "rejected", rows), {0: Step(1, 0, count)})
    tables.readings.commit([], {0: Step(1, 0, count)})
    return tables


class Peak:
    """The most that Arrow had at a time, beyond what it had before."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        pool = pa.default_memory_pool()
        before = pool.bytes_allocated()
        while not self._ended.wait(0.001):
            self.bytes = max(self.bytes, pool.bytes_allocated() - before)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def open_of(device: str, low: int, high: int, at_s: float = START_S) -> Open:
    return Open(device, 1, low, high, 0, "g", at_s, at_s, 1)


def test_one_reading_is_looked_up_without_loading_all_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other devices' rejects only the topics are read, of files that cannot have one of its topics nothing."""
    others = [f"telemetry/{name}-{number % 7}" for name in ("a", "z") for number in range(2_000)]
    payloads = [b'{"boot":1,"seq":%d,"pad":"%s"}' % (number, b"x" * 900) for number in range(4_000)]
    tables = rejects_of(tmp_path, others, payloads)
    read: list[tuple[str, ...]] = []
    pieces = scanning.pieces

    def noted(table: Any, paths: list[str], columns: list[str], fitting: Any) -> Any:
        read.extend([tuple(columns)] * bool(paths))
        return pieces(table, paths, columns, fitting)

    monkeypatch.setattr("tidegate.pipeline.completeness.rejects.pieces", noted)
    readings = StoredReadings(tables, 1, 30)
    assert list(readings.look_up_rejected([open_of("zz", 1, 5)])) == []
    assert read == []
    assert list(readings.look_up_rejected([open_of("good", 1, 5)])) == []
    assert read == [("slice", "topic")]
    found = list(readings.look_up_rejected([open_of("z-3", 2_000, 2_020)]))
    assert found == [Run("z-3", 1, seq, seq) for seq in (2_003, 2_010, 2_017)]


@pytest.mark.parametrize("topic", ["telemetry/d", "telemetry/d/deep/er", "telemetry/d/"])
def test_a_reject_is_found_on_every_topic_of_its_device(tmp_path: Path, topic: str) -> None:
    tables = rejects_of(
        tmp_path,
        ["telemetry/", "other", topic, "telemetry/d0", "telemetry/c/d"],
        [b'{"boot":1,"seq":%d}' % seq for seq in range(5)],
    )
    assert list(StoredReadings(tables, 1, 30).look_up_rejected([open_of("d", 0, 9)])) == [Run("d", 1, 2, 2)]


@pytest.mark.parametrize("kind", ["look up", "since"])
def test_many_rejects_do_not_fill_the_memory(tmp_path: Path, kind: str) -> None:
    count = 150_000
    payloads = [b'{"boot":1,"seq":%d,"pad":"%s"}' % (number, b"x" * 900) for number in range(count)]
    readings = StoredReadings(rejects_of(tmp_path, ["telemetry/d"] * count, payloads), 1, 30)
    del payloads
    wanted = [open_of("d", 0, count)]
    with Peak() as peak:
        runs = readings.look_up_rejected(wanted) if kind == "look up" else readings.since({0: 0}).rejected
        found = sum(run.high - run.low + 1 for run in runs)
    assert found == count
    assert peak.bytes < 64 << 20, "all of it is 140 MB"


def test_a_step_takes_a_bounded_number_of_rows_and_bytes_of_all_slices(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MESSAGES_MAX", 6)
    readings = StoredReadings(stand.tables, 2, 30)
    devices = {stand.log.slice_of(name): name for name in "abcd"}
    stand.publish(devices[0], *range(1, 101))
    stand.publish(devices[1], 1, 2)
    stand.commit()
    assert readings.since({0: 0, 1: 0}).positions == {0: 4, 1: 2}, "what one leaves the other has"
    monkeypatch.setattr(stored, "MESSAGES_MAX", 80)
    monkeypatch.setattr(stored, "BYTES_MAX", 200)
    new = readings.since({0: 0, 1: 2})
    assert new.positions == {0: 80, 1: 2}
    assert list(new.stored) == [Run(devices[0], 1, 1, 80)]
    assert readings.since({0: 80, 1: 2}).positions[0] < 90, "now it is known how large rows are"


# -- clocks


@pytest.mark.parametrize("days", [-40, 0, 1, 3, 31, 33, 4_000, 10**9])
def test_no_two_clocks_have_to_agree(stand: Stand, days: int) -> None:
    """The bus's says when a reading was acknowledged, the brokers' on which day the table has it."""
    device = "a"
    stand.publish(device, 1)
    stand.publish(device, 2, payload=b'{"boot":1,"seq":2,"value":"no"}')
    stand.commit()
    readings = StoredReadings(stand.tables, 2, 30)
    at_s = START_S + days * DAY_S
    wanted = [msgspec.structs.replace(open_of(device, 1, 2, at_s), slice=stand.log.slice_of(device))]
    assert list(readings.look_up(wanted)) == [Run(device, 1, 1, 1)]
    assert list(readings.look_up_rejected(wanted)) == [Run(device, 1, 2, 2)]
