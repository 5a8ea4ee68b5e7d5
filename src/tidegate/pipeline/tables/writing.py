"""What a Spark task does with its part of a batch: parse, drop repeats within the batch, write the files.

A task reports every identity that it wrote: what the driver does not hear of, it could not refuse the next time.

Runs in the executors' Python workers. Files are complete before the task ends and count for nothing until the driver
commits them, so a task that dies, or runs twice, leaves at most a file that no table knows.
"""

import hashlib
import json
import os
import pickle
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from tidegate.machine.evidence import left_in
from tidegate.model.errors import SequenceGapError
from tidegate.pipeline.tables.conflicts import conflicting, rejects_of, too_old
from tidegate.pipeline.tables.groups import GroupWriter
from tidegate.pipeline.tables.identities import Keys, Runs, keys_of
from tidegate.pipeline.tables.statistics import statistics_of
from tidegate.pipeline.tables.tables import DATE, Mark, Step
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import READINGS, REJECTED, parse

FILES = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}
DAY_US = 86_400_000_000
EPOCH = date(1970, 1, 1)
# Clocks without a battery begin in 1970 or 2000. No device that runs today took a reading before 2015.
CLOCK_SET_US = 1_420_070_400_000_000


def today() -> int:
    """The day by this process's clock."""
    return int(time.time() * 1e6) // DAY_US


@dataclass(frozen=True)
class TaskSettings:
    tables: Path
    window_s: int
    cost_us_per_record: float
    fsync: bool
    evidence: Path | None = None  # where a task leaves its error
    horizon_days: int = 30  # for how long identities are remembered


@dataclass(frozen=True)
class SliceWork:
    """One slice's share of a task: its way, what it cost, and the messages at both ends of the way."""

    step: Step
    rows: int
    payload_bytes: int
    oldest_us: int
    before: Mark | None  # of the message at ``step.after``, where that was read along
    last: Mark  # of the message at ``step.to``


@dataclass
class TaskResult:
    """What the driver needs to commit a task's work."""

    slices: dict[int, SliceWork]
    readings: list[AddAction] = field(default_factory=list)
    means: list[AddAction] = field(default_factory=list)
    rejected: list[AddAction] = field(default_factory=list)
    runs: dict[int, Runs] = field(default_factory=dict)
    repeats: int = 0
    rejects: dict[tuple[str, str], int] = field(default_factory=dict)  # (device, kind of reason) -> rows
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


@dataclass
class _Span:
    """What a task has seen of one slice. ``low`` and ``high`` are positions of messages behind ``after``."""

    epoch: int
    after: int
    low: int = 2**63 - 1
    high: int = -1
    rows: int = 0
    payload_bytes: int = 0
    oldest_us: int = 2**63 - 1
    before: Mark | None = None
    last: Mark | None = None


class _Task:
    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._spans: dict[int, _Span] = {}
        self._readings: list[pa.RecordBatch] = []
        self._rejected: list[pa.RecordBatch] = []
        self.seen_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        batch = self._measure(batch)
        self.seen_rows += batch.num_rows
        parsed = parse(batch)
        self._readings.append(parsed.readings)
        if parsed.rejected.num_rows:
            self._rejected.append(parsed.rejected)

    def _measure(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take note of what came; return it without the messages that only prove where it goes on."""
        slices = batch.column("slice").to_numpy()
        offsets = batch.column("offset").to_numpy()
        is_new = offsets > batch.column("after").to_numpy()
        for slice_ in np.unique(slices).tolist():
            mine = np.flatnonzero(slices == slice_)
            self._note(slice_, batch, mine[is_new[mine]], mine[~is_new[mine]])
        return batch if is_new.all() else batch.filter(pa.array(is_new))

    def _note(self, slice_: int, batch: pa.RecordBatch, new: np.ndarray, proofs: np.ndarray) -> None:
        any_row = int(new[0] if new.size else proofs[0])
        epoch, after = batch.column("epoch")[any_row].as_py(), batch.column("after")[any_row].as_py()
        span = self._spans.setdefault(slice_, _Span(epoch, after))
        if proofs.size:
            span.before = mark_at(batch, int(proofs[-1]))
        if not new.size:
            return
        offsets = batch.column("offset").to_numpy()[new]
        rows = batch.take(pa.array(new))
        span.low, span.rows = min(span.low, int(offsets.min())), span.rows + len(new)
        span.payload_bytes += int(pc.sum(pc.binary_length(rows.column("payload"))).as_py() or 0)
        span.oldest_us = min(span.oldest_us, int(pc.min(rows.column("arrived").cast(pa.int64())).as_py()))
        if int(offsets.max()) > span.high:
            span.high = int(offsets.max())
            span.last = mark_at(batch, int(new[offsets.argmax()]))

    def finish(self) -> TaskResult:
        work = {slice_: _whole(slice_, span) for slice_, span in self._spans.items() if span.rows}
        result = TaskResult(work)
        readings = self._without_old(pa.Table.from_batches(self._readings, READINGS))
        readings = self._without_repeats(readings, result)
        write_results(self._settings, readings, result)
        if self._rejected:
            rejects = pa.Table.from_batches(self._rejected, REJECTED)
            count_rejects(rejects, result)
            result.rejected = write_by_date(self._settings, "rejected", rejects)
        return result

    def _without_old(self, readings: pa.Table) -> pa.Table:
        """What was taken longer ago than identities are remembered cannot be told from a repeat: it is rejected."""
        old = pa.array(is_old(readings, self._settings.horizon_days))
        if not pc.any(old).as_py():
            return readings
        self._rejected += too_old(readings.filter(old), self._settings.horizon_days).to_batches()
        return readings.filter(pc.invert(old))

    def _without_repeats(self, readings: pa.Table, result: TaskResult) -> pa.Table:
        """Each identity once, the earliest; the same identity with another payload is rejected."""
        found = identities_of(readings)
        columns = (found.codes, found.boots, found.sequences)
        is_first = np.ones(len(found.rows), bool)
        is_first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        result.runs = found.runs(is_first)
        if is_first.all():
            return readings
        firsts = found.rows[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]]
        repeats = found.rows[~is_first]
        conflicts = conflicting(readings.take(repeats), readings.take(firsts[~is_first]))
        if conflicts.rows.num_rows:
            self._rejected += rejects_of(conflicts).to_batches()
        result.repeats += len(repeats) - conflicts.rows.num_rows
        keep = np.ones(readings.num_rows, bool)
        keep[repeats] = False
        return readings.filter(pa.array(keep))


def _whole(slice_: int, span: _Span) -> SliceWork:
    if span.rows != span.high - span.after or span.last is None:
        raise SequenceGapError(
            f"Slice {slice_} delivered {span.rows} messages behind {span.after} up to {span.high}: the batch is not "
            "whole, and is read again."
        )
    step = Step(span.epoch, span.after, span.high)
    return SliceWork(step, span.rows, span.payload_bytes, span.oldest_us, span.before, span.last)


def mark_at(batch: pa.RecordBatch, row: int) -> Mark:
    """What tells this message from any other that a log may have in its place."""
    digest = hashlib.blake2b(batch.column("topic")[row].as_py().encode(), digest_size=8)
    digest.update(batch.column("payload")[row].as_py())
    return Mark(batch.column("arrived").cast(pa.int64())[row].as_py(), int.from_bytes(digest.digest()) >> 1)


def write_results(settings: TaskSettings, readings: pa.Table, result: TaskResult) -> None:
    """Write the readings and the means derived from them; nothing for an empty table."""
    result.readings = write_by_date(settings, "readings", readings)
    result.means = write_by_date(settings, "means", partials(readings, settings.window_s)) if readings.num_rows else []


def is_old(readings: pa.Table, horizon_days: int) -> np.ndarray:
    """Has an identity, and was taken longer ago than those are remembered. A clock that was never set says nothing."""
    taken, arrived = (readings[name].cast(pa.int64()).to_numpy() for name in ("time", "arrived"))
    old: np.ndarray = (taken < arrived - horizon_days * DAY_US) & (taken >= CLOCK_SET_US)
    old &= readings["identified"].to_numpy()
    return old


def count_rejects(rejects: pa.Table, result: TaskResult) -> None:
    """Per device and kind of reason; the kind is what a reason says before its first colon."""
    for topic, reason in zip(rejects["topic"].to_pylist(), rejects["reason"].to_pylist(), strict=True):
        levels = topic.split("/")
        key = levels[1] if len(levels) > 1 else topic, reason.partition(":")[0]
        result.rejects[key] = result.rejects.get(key, 0) + 1


@dataclass(frozen=True)
class Identities:
    """The rows that have an identity, sorted by key, device, boot, sequence and then by row."""

    rows: np.ndarray
    keys: Keys
    codes: np.ndarray  # which device, as a number
    boots: np.ndarray
    sequences: np.ndarray
    slices: np.ndarray

    def runs(self, chosen: np.ndarray) -> dict[int, Runs]:
        """The chosen ones as runs, by slice."""
        found = {}
        for slice_ in np.unique(self.slices[chosen]).tolist():
            mine = chosen & (self.slices == slice_)
            order = np.lexsort((self.sequences[mine], self.keys[mine]))
            found[slice_] = Runs.of(self.keys[mine][order], self.sequences[mine][order])
        return found


def identities_of(readings: pa.Table) -> Identities:
    rows = np.flatnonzero(readings["identified"].to_numpy())
    devices = readings["device"].combine_chunks().dictionary_encode()
    codes = devices.indices.to_numpy()[rows]
    boots, sequences = (readings[name].take(pa.array(rows)).to_numpy().astype(np.int64) for name in ("boot", "seq"))
    slices = readings["slice"].to_numpy()[rows]
    order = np.lexsort((rows, sequences, boots, codes))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(codes[order]) != 0) | (np.diff(boots[order]) != 0)
    firsts = order[is_first]
    keys = keys_of(devices.dictionary.take(pa.array(codes[firsts])).to_pylist(), boots[firsts])
    keys = keys[np.cumsum(is_first) - 1]
    by_key = np.argsort(keys, kind="stable")
    order = order[by_key]
    return Identities(rows[order], keys[by_key], codes[order], boots[order], sequences[order], slices[order])


def write_by_date(settings: TaskSettings, table: str, rows: pa.Table) -> list[AddAction]:
    """One file per date of arrival: one as a rule, two around midnight."""
    if not rows.num_rows:
        return []
    days = rows["arrived"].cast(pa.int64()).to_numpy() // DAY_US
    return [
        write_file(settings, table, rows.filter(pa.array(days == day)), EPOCH + timedelta(days=day))
        for day in np.unique(days).tolist()
    ]


def write_file(settings: TaskSettings, table: str, rows: pa.Table, day: date) -> AddAction:
    """One parquet file of a table, with the statistics that let readers skip it."""
    name = f"{DATE}={day}/part-{uuid.uuid4()}.parquet"
    path = settings.tables / table / name
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, rows.schema, **FILES) as writer:
        groups = GroupWriter(writer)
        groups.write(rows)
        groups.finish()
    if settings.fsync:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    written = json.dumps(statistics_of(rows))
    return AddAction(name, path.stat().st_size, {DATE: str(day)}, int(time.time() * 1000), True, written)
