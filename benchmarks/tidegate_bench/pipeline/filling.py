"""Putting a known number of readings into the slices, and the same readings into parquet files."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.brokers.nats.fetch import fetch
from tidegate.brokers.port import SliceRange
from tidegate.bus.wire import Wire, encode_publish
from tidegate.model.errors import TidegateError
from tidegate.model.installation import Installation
from tidegate.pipeline.sources.rows import record_batch
from tidegate.report.progress import Progress

ROW_BYTES = 256
DEVICES_PER_SLICE = 100
CHUNK_ROWS = 2_000
START_S = int(time.time())  # what is older than the identity horizon would be rejected


def payload(number: int) -> bytes:
    seq = number // DEVICES_PER_SLICE
    return b'{"boot":1,"seq":%d,"time":%d.%03d,"value":%d.%02d}' % (
        seq,
        START_S + seq,
        number % 1000,
        number % 80,
        number % 100,
    )


def fill(installation: Installation, have: int, want: int, progress: Progress) -> None:
    """Raise the number of rows in all slices together from ``have`` to ``want``, straight into the slices' streams."""
    slices = installation.slices
    with Wire(installation.data_urls, name="bench-fill", timeout_s=30) as wire:
        for slice_ in range(slices):
            open_slice(wire, slice_)
        for start in range(have // slices, want // slices, CHUNK_ROWS):
            stop = min(start + CHUNK_ROWS, want // slices)
            for slice_ in range(slices):
                _publish(wire, slice_, start, stop)
            progress.update(f"{stop * slices:,} of {want:,} rows are in the log.")


def open_slice(wire: Wire, slice_: int) -> None:
    """Let rows into a slice's stream directly, past MQTT and ingest."""
    info = json.loads(wire.request(f"$JS.API.STREAM.INFO.SLICE_{slice_}").payload)
    config = {**info["config"], "subjects": [f"tg.{slice_}.>"]}
    answer = json.loads(wire.request(f"$JS.API.STREAM.UPDATE.SLICE_{slice_}", json.dumps(config).encode()).payload)
    if "error" in answer:
        raise TidegateError(f"The log does not take rows directly: {answer['error']['description']}.")


def _publish(wire: Wire, slice_: int, start: int, stop: int) -> None:
    """The last message of a chunk is acknowledged, and its sequence tells whether all before it were stored."""
    headers = {"Nmqtt-Pub": "1"}
    subjects = [f"tg.{slice_}.telemetry.s{slice_}d{device}" for device in range(DEVICES_PER_SLICE)]
    chunk = [
        encode_publish(subjects[n % DEVICES_PER_SLICE], payload(n), headers=headers) for n in range(start, stop - 1)
    ]
    wire.send(b"".join(chunk))
    last = stop - 1
    reply = wire.request(subjects[last % DEVICES_PER_SLICE], payload(last), headers=headers, timeout_s=60)
    stored = json.loads(reply.payload).get("seq")
    if stored != stop:
        raise TidegateError(f"Slice {slice_} stored {stored} of {stop} rows: the benchmark cannot go on.")


def write_parquet(installation: Installation, directory: Path, count: int) -> Path:
    """The rows of the log as Spark's source delivers them, one file per core, one row group per file."""
    directory.mkdir(parents=True)
    each = count // installation.slices
    halves = [range(installation.slices // 2), range(installation.slices // 2, installation.slices)]
    with Wire(installation.data_urls, name="bench-parquet") as wire:
        for number, slices in enumerate(halves):
            batches = [record_batch(rows, 1, 0) for rows in fetch(wire, [SliceRange(s, 0, each) for s in slices])]
            table = pa.Table.from_batches(batches)
            pq.write_table(table, directory / f"{number}.parquet", row_group_size=table.num_rows)
    time.sleep(0.1)
    return directory
