"""Readings of 60 KB among small ones: a batch is bounded in bytes, and what holds one in memory is, too."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.streaming.datasource import ReadMaxRows
from support.bus import ControlBus

import tidegate.brokers.nats.fetch as fetching
from tidegate.brokers.nats import direct_get, push_consumer
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.fetch import fetch
from tidegate.brokers.port import SliceRange
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.bus.wire import Wire, encode_publish
from tidegate.model.installation import Installation
from tidegate.model.progress import Batch
from tidegate.pipeline.sources import slices
from tidegate.pipeline.sources.slices import SliceReader
from tidegate_bench.pipeline.filling import START_S, open_slice
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.nodes import NodeProcess

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
LARGE_BYTES = 60_000
MANY_ROWS = 10**6
MIB = 1 << 20


def payload(number: int) -> bytes:
    """Every second one is large, and no two are alike."""
    said = b"%08d" % number * (LARGE_BYTES // 8 if number % 2 else 1)
    return b'{"boot":1,"seq":%d,"time":%d,"value":1,"said":"%s"}' % (number, START_S, said)


def fill(wire: Wire, slice_: int, rows: int) -> None:
    open_slice(wire, slice_)
    for number in range(rows):
        subject = f"tg.{slice_}.telemetry.d{number % 7}"
        if number % 50 == 49 or number == rows - 1:
            stored = json.loads(wire.request(subject, payload(number), timeout_s=30).payload)["seq"]
            assert stored == number + 1
        else:
            wire.send(encode_publish(subject, payload(number)))


ROWS = [200, 60]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with EmbeddedBrokers(tmp_path_factory.mktemp("large"), BrokerSettings(slices=len(ROWS))) as brokers:
        assert brokers.installation is not None
        with Wire(brokers.installation.data_urls) as wire:
            for slice_, rows in enumerate(ROWS):
                fill(wire, slice_, rows)
        yield brokers.installation


@pytest.fixture
def wire(here: Installation) -> Iterator[Wire]:
    with Wire(here.data_urls) as connected:
        yield connected


@pytest.mark.parametrize("backlog_rows", [10**9, 0], ids=["direct get", "push"])
def test_rows_are_handed_on_before_they_are_many_bytes(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, backlog_rows: int
) -> None:
    monkeypatch.setattr(fetching, "BACKLOG_ROWS", backlog_rows)
    monkeypatch.setattr(direct_get, "REQUEST_BYTES", MIB // 4)
    monkeypatch.setattr(direct_get, "CHUNK_BYTES", MIB // 2)
    monkeypatch.setattr(push_consumer, "CHUNK_BYTES", MIB // 2)
    found: dict[int, list[bytes]] = {0: [], 1: []}
    for rows in fetch(wire, [SliceRange(slice_, 0, count) for slice_, count in enumerate(ROWS)]):
        assert rows.first == len(found[rows.slice]) + 1
        # What arrives at once comes on top: a request's answer, or what the socket had.
        assert rows.payloads.nbytes <= 2 * MIB
        found[rows.slice] += rows.payloads.to_pylist()
    assert found == {slice_: [payload(number) for number in range(count)] for slice_, count in enumerate(ROWS)}


def test_a_message_that_is_larger_than_what_is_asked_for_at_once_comes_all_the_same(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_get, "REQUEST_BYTES", 1_000)
    (rows,) = fetch(wire, [SliceRange(1, 0, ROWS[1])])
    assert rows.payloads.to_pylist() == [payload(number) for number in range(ROWS[1])]


def reader(here: Installation, directory: Path, bytes_max: int) -> SliceReader:
    save_installation(msgspec.structs.replace(here, tables=str(directory / "tables")), directory)
    with ControlBus(here) as bus:
        bus.assignments.change(lambda before: before.adopt(["reader"])[0])
    return SliceReader(
        {"state": str(directory), "node": "reader", "partitions": "2", "bytes_per_batch": str(bytes_max)}
    )


@pytest.mark.parametrize(("bytes_max", "batches"), [(2 * MIB, 4), (1, max(ROWS))], ids=["2 MiB", "1 byte"])
def test_a_batch_stays_within_its_bytes_and_every_slice_gets_on(
    here: Installation, tmp_path: Path, bytes_max: int, batches: int
) -> None:
    reading = reader(here, tmp_path, bytes_max)
    offset = reading.initialOffset()
    sizes: list[int] = []
    while (end := reading.latestOffset(offset, ReadMaxRows(MANY_ROWS))) != offset:
        told = reading.reportLatestOffset()
        assert told is not None
        assert {name: bool(cut) for name, (cut, _, _) in told.items()} == {
            name: to < ROWS[int(name)] for name, (_, _, to) in end.items()
        }
        if bytes_max > 1:
            read = [batch for part in reading.partitions(offset, end) for batch in reading.read(part)]
            assert sum(batch.num_rows for batch in read) > 0
            sizes.append(sum(batch.column("payload").nbytes for batch in read))
        else:
            sizes.append(0)
        offset = end
    assert {name: to for name, (_, _, to) in offset.items()} == {str(s): count for s, count in enumerate(ROWS)}
    assert max(sizes) <= bytes_max + 2 * LARGE_BYTES
    assert len(sizes) == batches
    reading.stop()
    for kept in slices._logs.values():
        kept.close()
    slices._logs.clear()


# -- a whole node

BACKLOG = 5_000  # 150 MB
BYTES_MAX = 40 * MIB
HEAP_MIB = 512
# Its programs take 190 MiB before they have a reading.
WORKER_MIB_MAX = 450


def test_a_backlog_of_large_readings_is_worked_off_in_bounded_memory(tmp_path: Path) -> None:
    with Rig(BrokerSettings(slices=1), tmp_path) as rig:
        with Wire(rig.installation.data_urls, timeout_s=30) as wire:
            fill(wire, 0, BACKLOG)
        node = rig.start_node("small", heap_mib=str(HEAP_MIB), bytes_per_batch_max=str(BYTES_MAX), trigger_ms="100")
        with _Watched(node) as watched:
            rig.wait("every reading", lambda: stored(rig) == BACKLOG, 60)
        assert watched.worker_mib < WORKER_MIB_MAX
        rig.wait("what the node says of it", lambda: sum(batch.rows for batch in batches(rig)) >= BACKLOG, 10)
        assert [batch.at_limit for batch in batches(rig)] == [True, True, True, False]
        # Half of them are small. With each batch the message before it is read along.
        assert max(batch.rows for batch in batches(rig)) <= 1.1 * 2 * BYTES_MAX / LARGE_BYTES


def batches(rig: Rig) -> tuple[Batch, ...]:
    said = rig.progress("small")
    assert said is not None
    assert said.problem is None
    return said.batches


def stored(rig: Rig) -> int:
    path = Path(rig.installation.tables) / "readings"
    if not (path / "_delta_log").exists():
        return 0
    files = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True))
    return sum(files["num_records"].to_pylist()) if files.num_rows else 0


class _Watched:
    """The most that a worker of a node took while somebody looked."""

    def __init__(self, node: NodeProcess) -> None:
        self._node = node
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.worker_mib = 0.0

    def __enter__(self) -> "_Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ending.wait(0.1):
            for worker in self._node.workers():
                try:
                    self.worker_mib = max(self.worker_mib, worker.memory_info().rss / MIB)
                except psutil.Error:
                    continue
