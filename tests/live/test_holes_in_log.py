"""A log that lacks messages in its middle: deleted, or unreadable in the broker's store. Others read on meanwhile."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.compute as pc
import pytest
from support.bus import ControlBus
from support.rigs import SETTINGS, table
from support.waiting import until

from tidegate.brokers.nats import direct_get
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.opening import open_log
from tidegate.brokers.port import SliceRange
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus import key_value
from tidegate.bus.documents import GAPS
from tidegate.bus.installation import save_installation
from tidegate.bus.wire import Wire
from tidegate.machine import evidence
from tidegate.model.errors import BrokerUnavailableError, SequenceGapError
from tidegate.model.installation import Installation
from tidegate.pipeline.problems import doubted_in
from tidegate.pipeline.sources import holes, slices
from tidegate.pipeline.sources.planner import Offset
from tidegate.pipeline.sources.slices import SliceReader
from tidegate.pipeline.tables.tables import Mark, Step, Tables
from tidegate.pipeline.tables.writing import mark_at
from tidegate_bench.pipeline.filling import open_slice
from tidegate_bench.rig.installation import Rig

pytestmark = pytest.mark.live
ROWS = 100


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(holes, "MISSING_S_MIN", 0.3)
    monkeypatch.setattr(holes, "ASK_S", 0.05)
    return tmp_path


@pytest.fixture
def here(state: Path) -> Iterator[Installation]:
    with EmbeddedBrokers(state, BrokerSettings(slices=2)) as brokers:
        assert brokers.installation is not None
        with Wire(brokers.installation.data_urls) as wire:
            for slice_ in range(2):
                open_slice(wire, slice_)
                fill(wire, slice_, 1, ROWS)
        save_installation(brokers.installation, state)
        with ControlBus(brokers.installation) as bus:
            bus.assignments.change(lambda before: before.adopt(["reader"])[0])
        yield brokers.installation
    for kept in slices._logs.values():
        kept.close()
    slices._logs.clear()


def fill(wire: Wire, slice_: int, first: int, last: int) -> None:
    for number in range(first, last + 1):
        wire.request(f"tg.{slice_}.telemetry.d{slice_}", b'{"boot":1,"seq":%d,"value":1}' % number)


def delete(here: Installation, *sequences: int) -> None:
    with Wire(here.data_urls) as wire:
        for sequence in sequences:
            wire.request("$JS.API.STREAM.MSG.DELETE.SLICE_0", json.dumps({"seq": sequence}).encode())


class Query:
    """What Spark and a node make of the source: batches that are read, committed, and begun anew after an error."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._tables = Tables(state / "tables")
        self.evidence = state / "evidence"
        self.evidence.mkdir()
        self.read: dict[int, list[int]] = {0: [], 1: []}
        self.errors: list[str] = []
        self._start: Offset = {}
        self._reader = self._new()

    def _new(self) -> SliceReader:
        self._start = {}
        doubted = doubted_in(evidence.all_in(self.evidence))
        options = {"state": str(self._state), "node": "reader", "evidence": str(self.evidence)}
        return SliceReader({**options, "doubted": json.dumps(doubted)})

    def batch(self) -> None:
        try:
            end = self._reader.latestOffset(self._start, self._reader.getDefaultReadLimit())
            parts = self._reader.partitions(self._start, end)
            batches = [batch for part in parts for batch in self._reader.read(part)]
        except (SequenceGapError, BrokerUnavailableError) as error:
            self.errors.append(str(error))
            self._reader.stop()
            self._reader = self._new()
            return
        for slice_, epoch, after, to in (one for part in parts for one in part.ranges):
            mine = [batch for batch in batches if batch.column("slice")[0].as_py() == slice_]
            offsets = [offset for batch in mine for offset in batch.column("offset").to_pylist() if offset > after]
            assert offsets == list(range(after + 1, to + 1)), "a batch is dense"
            marks: dict[int, Mark | None] = {slice_: mark_at(mine[-1], mine[-1].num_rows - 1)}
            self._tables.readings.commit([], {slice_: Step(epoch, after, to)}, marks)
            self.read[slice_] += offsets
        self._start = end

    def until(self, condition: Callable[[], object]) -> None:
        until(lambda: condition() or self.batch())

    def stop(self) -> None:
        self._reader.stop()


@pytest.fixture
def query(state: Path, here: Installation) -> Iterator[Query]:
    running = Query(state)
    yield running
    running.stop()


def without(*sequences: int) -> list[int]:
    return [sequence for sequence in range(1, ROWS + 1) if sequence not in sequences]


def test_missing_messages_are_named_and_passed_over_and_no_other_slice_waits(query: Query, here: Installation) -> None:
    delete(here, 75, 76, 90)
    query.until(lambda: query.read[1])
    assert (query.read[0], query.read[1]) == (without(*range(75, 101)), without())
    assert len(query.errors) == 1
    query.until(lambda: len(query.read[0]) == ROWS - 3)
    assert query.read[0] == without(75, 76, 90)
    assert len(query.errors) == 2, "one for each hole"
    with ControlBus(here) as bus:
        (gap,) = bus.get(GAPS).open
    assert (gap.slice, gap.kind, gap.expected_sequence, gap.found_first, gap.missing) == (0, "missing", 74, 91, 3)
    # A query that begins anew in a place where no message is goes on from there.
    query.stop()
    query._reader = query._new()
    with Wire(here.data_urls) as wire:
        fill(wire, 0, ROWS + 1, ROWS + 1)
    query.until(lambda: len(query.read[0]) == ROWS - 2)
    assert query.read[0][-1] == ROWS + 1


def test_a_message_that_cannot_be_read_at_the_end_is_passed_over_when_others_come(
    query: Query, here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_get, "STALL_S", 0.3)
    delete(here, ROWS)
    query.until(lambda: query.read[1])
    for _ in range(10):
        query.batch()
    assert (query.read[0], len(query.errors)) == (without(ROWS), 1)
    with Wire(here.data_urls) as wire:
        fill(wire, 0, ROWS + 1, ROWS + 2)
    query.until(lambda: query.read[0][-1] == ROWS + 2)
    assert query.read[0] == [*without(ROWS), ROWS + 1, ROWS + 2]


def test_a_flipped_bit_in_the_store_is_a_missing_message(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(slices=1)) as brokers:
        assert brokers.installation is not None
        with Wire(brokers.installation.data_urls) as wire:
            open_slice(wire, 0)
            fill(wire, 0, 1, ROWS)
    (block,) = [path for path in tmp_path.rglob("*.blk") if "SLICE_0" in str(path)]
    content = block.read_bytes()
    block.write_bytes(content.replace(b'"seq":50,', b'"seq":51,'))  # its checksum does not fit any more
    with EmbeddedBrokers(tmp_path, BrokerSettings(slices=1)) as brokers:
        assert brokers.installation is not None
        assert brokers.installation.log is not None
        with closing(open_log(brokers.installation.log)) as log:
            assert [log.next_sequence(0, sequence) for sequence in (49, 50, 51, ROWS + 1)] == [49, 51, 51, None]
            with pytest.raises(SequenceGapError, match="Slice 0 has no message 50"):
                list(log.read([SliceRange(0, 40, 60)]))


def test_a_damaged_document_of_gaps_is_written_anew_and_keeps_nobody_waiting(query: Query, here: Installation) -> None:
    with ControlBus(here) as bus:
        bus._ask(key_value.to_put(GAPS.key, b'{"open":[{"slice":"x"}]}', revision=None, lease_s=None))
    with Wire(here.data_urls) as wire:
        wire.request("$JS.API.STREAM.PURGE.SLICE_0", b'{"seq":20}')
    query.until(lambda: query.read[0])
    assert (query.read[0], query.read[1], query.errors) == (list(range(20, 101)), without(), [])
    with ControlBus(here) as bus:
        assert [(gap.slice, gap.kind) for gap in bus.get(GAPS).open] == [(0, "deleted")]
    assert ['It said: b\'{"open":[{"slice":"x"}]}\'' in said for said in evidence.told_in(query.evidence)] == [True]


@pytest.mark.timeout(180)
def test_a_node_goes_on_and_names_what_is_missing(tmp_path: Path) -> None:
    with Rig(BrokerSettings(slices=2), tmp_path) as rig:
        with Wire(rig.installation.data_urls) as wire:
            for slice_ in range(2):
                open_slice(wire, slice_)
                fill(wire, slice_, 1, ROWS)
        delete(rig.installation, 75)
        rig.start_node("left", **SETTINGS)
        rig.wait("the other slice", lambda: _stored(rig, 1) == without())
        assert _stored(rig, 0) == without(*range(75, 101))
        rig.wait("an alarm", lambda: "Slice 0 has no message 75" in str(rig.progress("left")))
        rig.wait("what lies behind the hole", lambda: _stored(rig, 0) == without(75))
        rig.wait("no alarm", lambda: "Slice 0 has no message 75" not in str(rig.progress("left")))
        with ControlBus(rig.installation) as bus:
            assert [(gap.slice, gap.kind, gap.missing) for gap in bus.get(GAPS).open] == [(0, "missing", 1)]


def _stored(rig: Rig, slice_: int) -> list[int]:
    if not (Path(rig.installation.tables) / "readings").exists():
        return []
    rows = table(rig, "readings")
    return sorted(rows.filter(pc.equal(rows["slice"], slice_))["seq"].to_pylist())
