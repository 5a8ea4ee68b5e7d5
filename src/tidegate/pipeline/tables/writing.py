"""What a Spark task does with its part of a batch: parse, drop repeats within the batch, write the files.

Runs in the executors' Python workers. Files are complete before the task ends and count for nothing until the driver
commits them, so a task that dies, or runs twice, leaves at most a file that no table knows.
"""

import json
import os
import pickle
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from tidegate.machine.evidence import left_in
from tidegate.model.errors import SequenceGapError
from tidegate.pipeline.tables.identities import KnownIdentities, Run
from tidegate.pipeline.tables.tables import Step
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import parse


@dataclass(frozen=True)
class TaskSettings:
    tables: Path
    window_s: int
    cost_us_per_record: float
    fsync: bool
    evidence: Path | None = None  # where a task leaves its error


@dataclass(frozen=True)
class SliceWork:
    """One slice's share of a task: its way, and what it cost."""

    step: Step
    rows: int
    payload_bytes: int
    oldest_us: int


@dataclass
class TaskResult:
    """What the driver needs to commit a task's work."""

    slices: dict[int, SliceWork]
    readings: AddAction | None = None
    means: AddAction | None = None
    rejected: AddAction | None = None
    runs: dict[int, list[Run]] = field(default_factory=dict)
    repeats: int = 0
    busy_s: float = 0.0


def write_files(settings: TaskSettings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: all batches of a partition in, one pickled TaskResult out."""
    with left_in(settings.evidence):
        yield from _written(settings, batches)


def _written(settings: TaskSettings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    started = time.perf_counter()
    task = _Task(settings)
    for batch in batches:
        if batch.num_rows:
            task.add(batch)
    if task.seen_rows:
        if settings.cost_us_per_record:
            time.sleep(task.seen_rows * settings.cost_us_per_record / 1e6)
        result = task.finish()
        result.busy_s = time.perf_counter() - started
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], ["result"])


class _Task:
    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._seen: dict[int, KnownIdentities] = {}
        self._spans: dict[int, list[int]] = {}  # slice -> epoch, lowest, highest offset, rows, bytes, oldest stamp
        self._readings: list[pa.RecordBatch] = []
        self._rejected: list[pa.RecordBatch] = []
        self._repeats = 0
        self.seen_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.seen_rows += batch.num_rows
        self._measure(batch)
        parsed = parse(batch)
        self._readings.append(self._without_repeats(parsed.readings))
        if parsed.rejected.num_rows:
            self._rejected.append(parsed.rejected)

    def _measure(self, batch: pa.RecordBatch) -> None:
        slices = batch.column("slice").to_numpy()
        epochs = batch.column("epoch").to_numpy()
        offsets = batch.column("offset").to_numpy()
        stamps = batch.column("arrived").cast(pa.int64()).to_numpy()
        sizes = pc.binary_length(batch.column("payload")).to_numpy()
        for slice_ in np.unique(slices).tolist():
            mine = slices == slice_
            low, high = int(offsets[mine].min()), int(offsets[mine].max())
            counted = [int(mine.sum()), int(sizes[mine].sum()), int(stamps[mine].min())]
            span = self._spans.get(slice_)
            if span is None:
                self._spans[slice_] = [int(epochs[mine][0]), low, high, *counted]
            else:
                span[1], span[2] = min(span[1], low), max(span[2], high)
                span[3], span[4], span[5] = span[3] + counted[0], span[4] + counted[1], min(span[5], counted[2])

    def _without_repeats(self, readings: pa.RecordBatch) -> pa.RecordBatch:
        """Drop readings whose identity came earlier in this batch; remember the others as runs."""
        repeated: list[int] = []
        for slice_, device, boot, sequences, rows in identity_groups(readings):
            seen = self._seen.setdefault(slice_, KnownIdentities())
            for low_at, high_at in runs_of(sequences):
                run = Run(device, boot, int(sequences[low_at]), int(sequences[high_at - 1]))
                known = seen.add(run).known
                for part in known:
                    inside = (sequences[low_at:high_at] >= part.low) & (sequences[low_at:high_at] <= part.high)
                    repeated.extend(rows[low_at:high_at][inside].tolist())
        if not repeated:
            return readings
        self._repeats += len(repeated)
        keep = np.ones(readings.num_rows, bool)
        keep[repeated] = False
        return readings.filter(pa.array(keep))

    def finish(self) -> TaskResult:
        for slice_, (_, low, high, rows, _, _) in self._spans.items():
            if rows != high - low + 1:
                raise SequenceGapError(
                    f"Slice {slice_} delivered {rows} messages for offsets {low} to {high}: the batch is not whole, "
                    "and is read again."
                )
        work = {
            slice_: SliceWork(Step(epoch, low - 1, high), rows, size, oldest)
            for slice_, (epoch, low, high, rows, size, oldest) in self._spans.items()
        }
        readings = pa.Table.from_batches(self._readings)
        result = TaskResult(work, runs={s: seen.runs() for s, seen in self._seen.items()}, repeats=self._repeats)
        write_results(self._settings, readings, result)
        if self._rejected:
            rejects = pa.Table.from_batches(self._rejected)
            result.rejected = write_file(self._settings, "rejected", rejects)
        return result


def write_results(settings: TaskSettings, readings: pa.Table, result: TaskResult) -> None:
    """Write the readings and the means derived from them; nothing for an empty table."""
    result.readings = result.means = None
    if readings.num_rows:
        result.readings = write_file(settings, "readings", readings)
        result.means = write_file(settings, "means", partials(readings, settings.window_s))


def identity_groups(readings: pa.RecordBatch) -> Iterator[tuple[int, str, int, np.ndarray, np.ndarray]]:
    """(slice, device, boot, sequences in ascending order, their rows) of the readings that have an identity.

    Equal sequences stand side by side, the earlier offset first.
    """
    rows = np.flatnonzero(readings.column("identified").to_numpy(zero_copy_only=False))
    if not rows.size:
        return
    devices = readings.column("device").dictionary_encode()
    codes = devices.indices.to_numpy()[rows]
    slices = readings.column("slice").to_numpy()[rows]
    boots = readings.column("boot").to_numpy(zero_copy_only=False)[rows].astype(np.int64)
    sequences = readings.column("seq").to_numpy(zero_copy_only=False)[rows].astype(np.int64)
    order = np.lexsort((rows, sequences, boots, codes))
    codes, boots = codes[order], boots[order]
    sequences, slices, rows = sequences[order], slices[order], rows[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(codes) != 0) | (np.diff(boots) != 0)])
    names = devices.dictionary.to_pylist()
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
        yield int(slices[start]), names[codes[start]], int(boots[start]), sequences[start:stop], rows[start:stop]


def runs_of(sequences: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where each run of consecutive numbers starts and stops; a repeated number starts a run of its own."""
    breaks = np.flatnonzero(np.diff(sequences) != 1) + 1
    edges = [0, *breaks.tolist(), len(sequences)]
    yield from pairwise(edges)


def write_file(settings: TaskSettings, table: str, rows: pa.Table) -> AddAction:
    """One parquet file of a table, with the statistics that let readers skip it."""
    name = f"part-{uuid.uuid4()}.parquet"
    path = settings.tables / table / name
    pq.write_table(rows, path, compression="zstd", compression_level=1)
    if settings.fsync:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    written = json.dumps(_statistics(rows))
    return AddAction(name, path.stat().st_size, {}, int(time.time() * 1000), True, written)


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """What readers skip files by. Every column is counted: a column that is not would be taken for all null."""
    lows, highs = {}, {}
    for field_ in rows.schema:
        if pa.types.is_integer(field_.type) or pa.types.is_floating(field_.type) or pa.types.is_string(field_.type):
            bounds = pc.min_max(rows[field_.name])
            lows[field_.name], highs[field_.name] = bounds["min"].as_py(), bounds["max"].as_py()
        elif pa.types.is_timestamp(field_.type):
            # The log keeps milliseconds: round outwards, so that no row falls outside its file's bounds.
            bounds = pc.min_max(rows[field_.name].cast(pa.int64()))
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            lows[field_.name] = None if low is None else _iso(low // 1000)
            highs[field_.name] = None if high is None else _iso(-(-high // 1000))
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: value for name, value in lows.items() if value is not None},
        "maxValues": {name: value for name, value in highs.items() if value is not None},
        "nullCount": {name: rows[name].null_count for name in rows.column_names},
    }


def _iso(milliseconds: int) -> str:
    stamp = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
