"""The Spark source against a real log, without Spark around it: whole ranges or an error, never a shrug."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support.bus import ControlBus
from support.waiting import until

import tidegate.brokers.nats.fetch as fetching
from tidegate.brokers.nats import direct_get
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.fetch import fetch
from tidegate.brokers.port import SliceRange
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import COMPLETENESS, GAPS, NODE_LEASES
from tidegate.bus.installation import load_installation, save_installation
from tidegate.bus.leases import Lease
from tidegate.bus.wire import Wire
from tidegate.cli.main import run
from tidegate.model.errors import BrokerUnavailableError, SequenceGapError
from tidegate.model.installation import Installation
from tidegate.model.ledger import CompletenessState, Hole
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.retention import Retention
from tidegate.pipeline.settings import NodeSettings
from tidegate.pipeline.sources import claiming, slices
from tidegate.pipeline.sources.planner import Offset
from tidegate.pipeline.sources.slices import SliceReader
from tidegate.pipeline.tables.tables import Mark, Step, Tables
from tidegate.pipeline.tables.writing import mark_at
from tidegate_bench.pipeline.filling import open_slice

pytestmark = pytest.mark.live
SLICES = 3
ROWS = 2_500
# Payloads that look like protocol, end like it, or are not text at all.
STRANGE = [
    b"",
    b"\r\n",
    b"HMSG a 1 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"PING\r\n",
    b"\x00\xff" * 40,
    b"-ERR 'no'\r\n",
    b"NATS/1.0 100 x",
]


def payload(number: int) -> bytes:
    return STRANGE[number % 100] if number % 100 < len(STRANGE) else b'{"value":%d}' % number


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with EmbeddedBrokers(tmp_path_factory.mktemp("state"), BrokerSettings(slices=SLICES)) as brokers:
        assert brokers.installation is not None
        with Wire(brokers.installation.data_urls) as wire:
            for slice_ in range(SLICES):
                open_slice(wire, slice_)
                for number in range(ROWS):
                    wire.publish(f"tg.{slice_}.telemetry.d//{number % 7}", payload(number))
                wire.request(f"tg.{slice_}.telemetry.last", b"{}")
        yield brokers.installation


@pytest.fixture
def wire(here: Installation) -> Iterator[Wire]:
    with Wire(here.data_urls) as connected:
        yield connected


def rows_of(wire: Wire, ranges: list[tuple[int, int, int]]) -> dict[int, list[tuple[int, str, bytes]]]:
    found: dict[int, list[tuple[int, str, bytes]]] = {}
    for rows in fetch(wire, [SliceRange(*one) for one in ranges]):
        offsets = range(rows.first, rows.first + len(rows.payloads))
        found.setdefault(rows.slice, []).extend(
            zip(offsets, rows.topics.to_pylist(), rows.payloads.to_pylist(), strict=True)
        )
    return found


@pytest.mark.parametrize("backlog_rows", [10**9, 0], ids=["direct get", "push"])
def test_a_range_is_delivered_whole_in_order_and_twice_the_same(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, backlog_rows: int
) -> None:
    monkeypatch.setattr(fetching, "BACKLOG_ROWS", backlog_rows)
    ranges = [(0, 0, ROWS), (1, 100, 101), (2, 7, ROWS)]
    first = rows_of(wire, ranges)
    assert [len(first[slice_]) for slice_ in range(SLICES)] == [ROWS, 1, ROWS - 7]
    for slice_, after, last in ranges:
        assert [offset for offset, _, _ in first[slice_]] == list(range(after + 1, last + 1))
        assert all(body == payload(offset - 1) for offset, _, body in first[slice_])
    assert rows_of(wire, ranges) == first


def test_both_ways_give_the_same_rows(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = rows_of(wire, [(0, 0, ROWS)])
    monkeypatch.setattr(fetching, "BACKLOG_ROWS", 0)
    assert rows_of(wire, [(0, 0, ROWS)]) == direct


@pytest.mark.parametrize("backlog_rows", [10**9, 0], ids=["direct get", "push"])
def test_a_missing_message_is_an_error_that_names_it(
    here: Installation, wire: Wire, monkeypatch: pytest.MonkeyPatch, backlog_rows: int
) -> None:
    monkeypatch.setattr(fetching, "BACKLOG_ROWS", backlog_rows)
    victim = 1200 if backlog_rows else 1300
    with Wire(here.data_urls) as other:
        other.request("$JS.API.STREAM.MSG.DELETE.SLICE_1", json.dumps({"seq": victim}).encode())
    with pytest.raises(SequenceGapError, match=f"Slice 1 has no message {victim}"):
        rows_of(wire, [(1, victim - 2, ROWS)])


def test_what_the_log_does_not_have_yet_is_waited_for_and_then_an_error(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_get, "STALL_S", 0.5)
    with pytest.raises(BrokerUnavailableError):
        rows_of(wire, [(0, ROWS, ROWS + 50)])


# -- the reader, as Spark calls it


def committed(
    reader: SliceReader, offset: Offset, reached: dict[int, int], marks: dict[int, Mark] | None = None
) -> None:
    """The tables have these slices up to there."""
    readings = Tables(reader.planner._tables.directory).readings
    steps = {slice_: Step(offset[str(slice_)][0], offset[str(slice_)][1], to) for slice_, to in reached.items()}
    readings.commit([], steps, marks)


@pytest.fixture
def reader(here: Installation, tmp_path: Path) -> Iterator[SliceReader]:
    fresh = msgspec.structs.replace(here, tables=str(tmp_path / "tables"))
    save_installation(fresh, tmp_path)
    with ControlBus(here) as bus:
        bus.assignments.change(lambda before: before.vacate("other").adopt(["reader"])[0])
    reading = SliceReader({"state": str(tmp_path), "node": "reader", "partitions": "2"})
    yield reading
    reading.stop()
    # A worker keeps its connection for the next batch; this process is none.
    for kept in slices._logs.values():
        kept.close()
    slices._logs.clear()


def test_a_batch_stays_within_the_limit_and_shares_it(reader: SliceReader) -> None:
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(300))
    assert sum(to - begin for _, begin, to in end.values()) == 300
    assert all(to - begin == 100 for _, begin, to in end.values())
    after = reader.latestOffset(end, ReadAllAvailable())
    assert all(to == ROWS + 1 for _, _, to in after.values())


def test_the_same_offsets_give_the_same_rows(reader: SliceReader) -> None:
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    end = reader.latestOffset(start, ReadMaxRows(90))

    def read() -> list[pa.RecordBatch]:
        batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
        return sorted(batches, key=lambda batch: batch.column("slice")[0].as_py())

    first = read()
    # Each slice brings the message along that it goes on from.
    assert sum(batch.num_rows for batch in first) == 90 + SLICES
    assert all(batch.column("offset")[0].as_py() == batch.column("after")[0].as_py() == 10 for batch in first)
    assert all(one.equals(two) for one, two in zip(first, read(), strict=True))
    assert "telemetry/d.3" in first[0].column("topic").to_pylist()


def test_nothing_new_is_no_partition(reader: SliceReader) -> None:
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.partitions(end, end) == []
    assert reader.latestOffset(end, ReadMaxRows(10)) == end


def test_available_now_ends_where_the_log_was(reader: SliceReader, here: Installation) -> None:
    reader.prepareForTriggerAvailableNow()
    with Wire(here.data_urls) as other:
        other.request("tg.0.telemetry.late", b"{}")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.planner.ends({0: 0})[0] == end["0"][2] + 1


def test_a_slice_with_a_taker_is_let_go_at_the_next_offset(reader: SliceReader, here: Installation) -> None:
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    with ControlBus(here) as bus:
        assignments, lease = bus.assignments, Lease(bus, NODE_LEASES, "other", 5)
        assert lease.keep()
        assert assignments.move(1, "other") is None
        # Not before the tables have what was read of it.
        assert sorted(reader.latestOffset(start, ReadMaxRows(30))) == ["0", "1", "2"]
        committed(reader, start, {1: start["1"][2]})
        after = reader.latestOffset(start, ReadMaxRows(30))
        assert sorted(after) == ["0", "2"]
        assert assignments.current().ownerships[1].owner == "other"
        lease.end()


def test_a_log_that_ends_before_what_was_read_of_it_is_an_error(reader: SliceReader) -> None:
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    ahead = {name: [epoch, begin, 10**6] for name, (epoch, begin, _) in start.items()}
    with pytest.raises(SequenceGapError, match="but was read up to 1000000"):
        reader.latestOffset(ahead, ReadMaxRows(30))


# -- a log that is not the one that was read


def successor(reader: SliceReader) -> SliceReader:
    """A query of the same node that starts anew."""
    return SliceReader({"state": str(reader._state), "node": "reader", "partitions": "2"})


def mark_of(reader: SliceReader, offset: Offset, slice_: int) -> Mark:
    """Of the message at the end of the slice's range."""
    last = {**offset, str(slice_): [offset[str(slice_)][0], offset[str(slice_)][1], offset[str(slice_)][2] - 1]}
    (batch,) = [batch for part in reader.partitions(last, offset) for batch in reader.read(part)]
    return mark_at(batch, batch.num_rows - 1)


def test_a_message_that_is_still_there_proves_the_log(reader: SliceReader, here: Installation) -> None:
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    committed(reader, end, {2: 10}, {2: mark_of(reader, end, 2)})
    again = successor(reader)
    assert again.latestOffset({}, ReadMaxRows(30))["2"][1:] == [10, 20]
    again.stop()
    with ControlBus(here) as bus:
        assert bus.get(GAPS) is None


def test_a_log_that_was_set_back_is_read_anew_and_named(reader: SliceReader, here: Installation) -> None:
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    committed(reader, end, {2: 10}, {2: Mark(1_000_000, 5)})  # another message than the log has there
    again = successor(reader)
    offset = again.latestOffset({}, ReadAllAvailable())
    assert [incarnation_of(place) for place in offset["2"][1:]] == [1, 1]
    assert [sequence_of(place) for place in offset["2"][1:]] == [0, ROWS + 1]
    (part,) = [part for part in again.partitions({}, {"2": offset["2"]}) if part.ranges]
    rows = pa.Table.from_batches(list(again.read(part)))
    assert (rows.num_rows, rows["offset"][0].as_py()) == (ROWS + 1, position(1, 1))
    again.stop()
    with ControlBus(here) as bus:
        (gap,) = bus.get(GAPS).open
        assert (gap.slice, gap.kind, gap.expected_sequence, gap.found_last) == (2, "different", 10, ROWS + 1)


def test_a_person_sees_a_gap_and_closes_it(
    here: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_installation(here, tmp_path)
    hole = Hole(
        device="pump", boot=1, low=3, high=4, slice=2, gateway="gateway-1", since_s=1.0, until_s=2.0, named_s=3.0
    )
    with ControlBus(here) as bus:
        bus.put(COMPLETENESS, CompletenessState(checker="m", at_s=3.0, holes=(hole,)))

    def recover(*options: str) -> tuple[int, str]:
        status = run(["recover", "--state", str(tmp_path), *options])
        return status, "".join(capsys.readouterr())

    status, said = recover()
    assert status == 1
    assert "Slice 2: the log was set back or replaced: the tables have it up to 10" in said
    assert "missing: device pump, boot 1, seq 3 to 4" in said
    status, said = recover("--close", "0")
    assert status == 2
    assert "Slice 0 has no open gap" in said
    status, said = recover("--close", "2", "--json")
    assert (status, json.loads(said)["closed_slices"]) == (0, [2])
    assert "No gap is open" in recover()[1]


def test_a_log_that_is_shorter_for_good_is_read_from_its_first_message(
    reader: SliceReader, here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "SHORTER_S_MAX", 0.1)
    monkeypatch.setattr(claiming, "SHORTER_POLL_S", 0.02)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    committed(reader, end, {1: 10**6}, {1: Mark(1_000_000, 5)})
    again = successor(reader)
    offset = again.latestOffset({}, ReadAllAvailable())
    assert sorted(offset) == ["0", "2"], "others do not wait for it"
    until(lambda: "1" in offset or offset.update(again.latestOffset(offset, ReadAllAvailable())))
    assert sequence_of(offset["1"][1]) == 0
    again.stop()
    with ControlBus(here) as bus:
        assert [(gap.slice, gap.kind) for gap in bus.get(GAPS).open] == [(1, "shorter")]
        bus.delete(GAPS)


def test_a_fresh_bus_takes_its_epochs_above_those_of_the_tables(reader: SliceReader, here: Installation) -> None:
    tables = Tables(reader._state / "tables")
    tables.claim({0: 700, 1: 700, 2: 700})
    tables.rejected.claim({1: 900})
    held: Offset = {}
    for _ in range(3):
        held = reader.latestOffset(held, ReadMaxRows(30))
    assert {name: at[0] for name, at in held.items()} == {"0": 701, "1": 901, "2": 701}
    with ControlBus(here) as bus:
        assert [hold.epoch for hold in bus.assignments.current().ownerships] == [701, 901, 701]


def test_nothing_is_removed_from_a_log_that_is_not_the_one_that_was_read(reader: SliceReader) -> None:
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(60))
    marks = {slice_: mark_of(reader, end, slice_) for slice_ in range(SLICES)}
    committed(reader, end, dict.fromkeys(range(SLICES), 20), marks | {2: Mark(1_000_000, 5)})
    keeping = Retention(load_installation(reader._state), NodeSettings(name="reader"), 0.0, fsync=False)
    assert keeping.purge_if_due({0, 2}, now_s=1.0) is None
    told = keeping.purge_if_due({0, 2}, now_s=3600.0)
    keeping.close()
    assert told is not None
    assert ["Slice 2 no longer has the message that was read at 20" in sentence for sentence in told] == [True]
    firsts = {slice_: span.first for slice_, span in reader.planner._log.spans([0, 1, 2]).items()}
    assert firsts == {0: 20, 1: 1, 2: 1}


def test_a_slice_whose_stream_does_not_answer_keeps_no_other_waiting(reader: SliceReader, wire: Wire) -> None:
    """The last test of this module: the stream does not come back."""
    held = reader.latestOffset(reader.initialOffset(), ReadMaxRows(30))
    wire.request("$JS.API.STREAM.DELETE.SLICE_1")
    after = reader.latestOffset(held, ReadMaxRows(30))
    assert after["1"] == held["1"]
    assert all(after[name][2] > held[name][2] for name in ("0", "2"))
    again = successor(reader)
    assert sorted(again.latestOffset({}, ReadMaxRows(30))) == ["0", "2"]
    again.stop()
