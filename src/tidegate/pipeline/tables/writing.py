"""What a Spark task does with its part of a batch: parse, drop repeats within the batch, write the files.

A task reports every identity that it wrote: what the driver does not hear of, it could not refuse the next time.

Nobody knows how large messages are before they are read. A task that holds more than ``PART_BYTES`` of them writes what
it has as a part with a result of its own, and goes on: large ones cost time, not memory. The driver commits all parts
at once, each slice's in their order, as it does with batches that it held back.

Runs in the executors' Python workers. Files are complete before the task ends and count for nothing until the driver
commits them, so a task that dies, or runs twice, leaves at most a file that no table knows.
"""

import hashlib
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
from tidegate.pipeline.tables.conflicts import conflicting, too_old
from tidegate.pipeline.tables.groups import GroupWriter
from tidegate.pipeline.tables.identified import identities_of
from tidegate.pipeline.tables.identities import Runs
from tidegate.pipeline.tables.statistics import statistics_of, written
from tidegate.pipeline.tables.tables import DATE, Mark, Step
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import READINGS, REJECTED, parse

FILES = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}
DAY_US = 86_400_000_000
EPOCH = date(1970, 1, 1)
# Clocks without a battery begin in 1970 or 2000. No device that runs today took a reading before 2015.
CLOCK_SET_US = 1_420_070_400_000_000
# What came and what it was parsed to, in memory: 200,000 small readings, half of a full batch, are one part.
PART_BYTES = 64 << 20


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
    alive: Path | None = None  # what a task touches when a part is written: a batch of many parts takes long


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
    disputed: list[AddAction] = field(default_factory=list)  # readings that say otherwise than one of the same identity
    runs: dict[int, Runs] = field(default_factory=dict)
    repeats: int = 0
    rejects: dict[tuple[str, str], int] = field(default_factory=dict)  # (device, kind of reason) -> rows
    busy_s: float = 0.0


def write_files(settings: TaskSettings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: all batches of a partition in, pickled TaskResults out, one for each part."""
    with left_in(settings.evidence):
        yield from _written(settings, batches)


def _written(settings: TaskSettings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task, seen_rows = _Task(settings), 0
    for batch in batches:
        if batch.num_rows:
            task.add(batch)
        if task.held_bytes >= PART_BYTES:
            seen_rows += task.seen_rows
            yield _pickled(task.finish())
            if settings.alive is not None:
                settings.alive.touch()
            task = _Task(settings, task.following())
    if seen_rows + task.seen_rows and settings.cost_us_per_record:
        # Not between parts: the broker gives up a reader that takes nothing for seconds.
        time.sleep((seen_rows + task.seen_rows) * settings.cost_us_per_record / 1e6)
    if task.seen_rows:
        yield _pickled(task.finish())


def _pickled(result: TaskResult) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], ["result"])


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
    """One part of a task: the only one as a rule."""

    def __init__(self, settings: TaskSettings, spans: dict[int, _Span] | None = None) -> None:
        """``spans`` is where the parts before this one left the slices."""
        self._settings = settings
        self._spans = spans or {}
        self._readings: list[pa.RecordBatch] = []
        self._rejected: list[pa.RecordBatch] = []
        self._started_s = time.perf_counter()
        self.seen_rows = 0
        self.held_bytes = 0

    def following(self) -> dict[int, _Span]:
        """Where the next part goes on. A slice of which only the proof has come takes that along."""
        return {s: _Span(span.epoch, span.high) if span.rows else span for s, span in self._spans.items()}

    def add(self, batch: pa.RecordBatch) -> None:
        batch = self._measure(batch)
        self.seen_rows += batch.num_rows
        parsed = parse(batch)
        # What was parsed keeps some columns of what came, and with them all of its memory.
        self.held_bytes += batch.nbytes + parsed.readings.nbytes + parsed.rejected.nbytes
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
        result.busy_s = time.perf_counter() - self._started_s
        return result

    def _without_old(self, readings: pa.Table) -> pa.Table:
        """What was taken longer ago than identities are remembered cannot be told from a repeat: it is rejected."""
        old = pa.array(is_old(readings, self._settings.horizon_days))
        if not pc.any(old).as_py():
            return readings
        self._rejected += too_old(readings.filter(old), self._settings.horizon_days).to_batches()
        return readings.filter(pc.invert(old))

    def _without_repeats(self, readings: pa.Table, result: TaskResult) -> pa.Table:
        """Each identity once, the earliest; the same identity with another payload is disputed."""
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
        # Which of them is right the driver finds out: the table may have what came second here.
        result.disputed = write_by_date(self._settings, "readings", conflicts.rows)
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
    statistics = written(statistics_of(rows))
    return AddAction(name, path.stat().st_size, {DATE: str(day)}, int(time.time() * 1000), True, statistics)
