"""What a node is doing, in figures that others can act on: per query from Spark, per slice from the sink."""

import json
import math
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
import psutil

from tidegate.model.progress import BATCHES_SAID, Batch, NodeProgress, RowsAtLimit, SliceProgress, WorkTotals
from tidegate.pipeline.pulse import Pulse
from tidegate.pipeline.rejects import RejectCounter
from tidegate.pipeline.tables.writing import TaskResult

# A batch has a fixed cost of a few tenths of a second, which in one of this length hardly counts any more.
LONG_BATCH_S = 1.0
# A long batch that is slower than this share of the one before it was held up by something; the next one will tell.
HELD_UP_SHARE = 0.5
# So many batches in a row, each larger than the one before, by so much together: more arrives than is taken.
RISES, GROWN_SHARE = 2, 1.2
# The share of a batch that tasks worked on its rows. On two processors it was 0.59 to 0.77 where more came than a node
# could take, and below 0.5, now and then 0.59, where the machine was busy with something else.
BUSY_SHARE = 0.6

Offsets = dict[str, list[int]]


def plausible(progress: dict[str, Any], seconds_max: float) -> dict[str, Any]:
    """Spark's report of a batch, which cannot have taken longer than since the report before it, nor less than nothing.

    Spark takes the time by the machine's clock. Where that is set meanwhile a batch seems to take days: a node would be
    left alone for as long if it hung then, and a node does hang then, because Spark waits for a time that is days away.
    """
    if "batchDuration" not in progress:
        return progress
    return {**progress, "batchDuration": min(max(0, progress["batchDuration"]), round(seconds_max * 1e3))}


class CapacityCounter:
    """Rows and seconds of the batches that show what the node can do.

    Such a batch was cut by a limit; or it was long, its rows took most of that time, so it was with the one before it,
    and batches have grown for a while: more arrived during each than that took. A long one that has not grown keeps up,
    and one whose rows took little of its time is long because the machine has other work: both show nothing of what the
    node could do. The first batch of a query that has rows shows how long a query takes to start, and a long one that
    is suddenly much slower shows a pause of the machine. What a limit leaves waiting in a batch that is shorter than
    the trigger waits for the next one: that time counts as well.
    """

    def __init__(self, trigger_s: float) -> None:
        self._trigger_s = trigger_s
        self.rows = 0
        self.seconds = 0.0
        self._query: str | None = None
        self._rows_per_s: float | None = None
        self._first, self._last, self._rises = 0, 0, 0  # rows of batches of which each has more than the one before
        self._was_busy = False

    def add(self, progress: dict[str, Any], *, was_cut: bool, busy_s: float) -> None:
        """``busy_s``: how long each task worked on its rows."""
        rows, seconds = progress.get("numInputRows", 0), progress.get("batchDuration", 0) / 1e3
        if not rows or not seconds:
            return
        before = self._rows_per_s if progress.get("runId") == self._query else None
        rises = before is not None and rows > self._last
        self._first, self._rises = (self._first, self._rises + 1) if rises else (rows, 0)
        self._last = rows
        self._query, self._rows_per_s = progress.get("runId"), rows / seconds
        is_busy = seconds >= LONG_BATCH_S and busy_s >= BUSY_SHARE * seconds
        was_busy, self._was_busy = self._was_busy and before is not None, is_busy
        if before is None:
            return
        has_grown = self._rises >= RISES and rows >= GROWN_SHARE * self._first
        at_limit = is_busy and was_busy and has_grown and self._rows_per_s >= HELD_UP_SHARE * before
        if was_cut or at_limit:
            self.rows += rows
            self.seconds += max(seconds, self._trigger_s)


class ProgressBoard:
    """Written by the query's threads, read by the keeper. ``progress`` is None while there is nothing new."""

    def __init__(self, node: str, trigger_s: float = 0.0, pulse: Pulse | None = None) -> None:
        """Without a pulse nobody asks how long the query has been silent."""
        self._lock = threading.Lock()
        self._pulse = pulse or Pulse(math.inf)
        self._node = node
        self._slices: dict[int, SliceProgress] = {}
        self._query: dict[str, Any] = {}
        self._reported: tuple[Any, ...] = ()
        self._totals = WorkTotals()
        self._rejects = RejectCounter()
        self._capacity = CapacityCounter(trigger_s)
        self._batches: deque[Batch] = deque(maxlen=BATCHES_SAID)
        self._committed_at_s = 0.0
        self._busy_s = 0.0  # of a task of the newest batch
        self._full = False
        self._problem: str | None = None
        self._alarms: dict[str, str] = {}  # by whose they are
        self._fresh = True

    def started(self) -> None:
        """Called when a query begins."""
        with self._lock:
            self._pulse.started()

    def worked(self) -> None:
        """Called when a part of a batch is done."""
        with self._lock:
            self._pulse.worked()

    def committed(self, results: list[TaskResult], now_s: float) -> None:
        """Called after each commit with what it covered; an empty batch that ended well is one too."""
        with self._lock:
            self._pulse.beat()
            self._problem = None
            if results:
                self._committed_at_s = now_s
            oldest_us: dict[int, int] = {}
            for result in results:
                self._rejects.add(result.rejects)
                rows = sum(work.rows for work in result.slices.values())
                for slice_, work in result.slices.items():
                    before = self._slices.get(slice_, SliceProgress(committed=0))
                    oldest_us[slice_] = min(work.oldest_us, oldest_us.get(slice_, work.oldest_us))
                    self._slices[slice_] = SliceProgress(
                        epoch=work.step.epoch,
                        committed=work.step.to,
                        rows=before.rows + work.rows,
                        bytes=before.bytes + work.payload_bytes,
                        cost_us_per_row=round(result.busy_s * 1e6 / rows, 2),
                        age_s=round(now_s - oldest_us[slice_] / 1e6, 3),
                    )
            rows = sum(work.rows for one in results for work in one.slices.values())
            self._pulse.was_busy(rows, sum(one.busy_s for one in results))
            if results:
                self._busy_s = sum(one.busy_s for one in results) / len(results)
            self._totals = WorkTotals(
                rows=self._totals.rows + rows,
                repeats=self._totals.repeats + sum(one.repeats for one in results),
                batches=self._totals.batches + 1,
            )
            self._fresh = True

    def has_seen(self, progress: dict[str, Any]) -> bool:
        """Whether this was the last report that was given to ``progressed``."""
        return _identity(progress) == self._reported

    def progressed(self, progress: dict[str, Any]) -> None:
        """Called with every report of Spark's, in their order."""
        source = (progress.get("sources") or [{}])[0]
        ends, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        with self._lock:
            self._reported = _identity(progress)
            self._pulse.beat()
            if progress.get("numInputRows"):
                self._pulse.took(progress.get("batchDuration", 0) / 1e3)
            was_cut = any(at[0] for slice_, at in latest.items() if slice_ in ends)
            self._capacity.add(progress, was_cut=was_cut, busy_s=self._busy_s)
            self._batches += _batches(progress, at_limit=was_cut)
            held = {int(name): at for name, at in ends.items()}
            self._slices = {
                slice_: msgspec.structs.replace(
                    known, lag=max(0, latest.get(str(slice_), held[slice_])[2] - held[slice_][2])
                )
                for slice_, known in self._slices.items()
                if slice_ in held
            }
            self._query = {
                "batch": progress.get("batchId"),
                "input_rows_per_s": progress.get("inputRowsPerSecond"),
                "processed_rows_per_s": progress.get("processedRowsPerSecond"),
                "batch_ms": progress.get("batchDuration"),
                "durations_ms": progress.get("durationMs"),
                "held": sorted(held),
            }
            self._fresh = True

    def planned(self, batch: int, rows: int, rows_max: int) -> None:
        """How many rows the batch has that was begun last: a full one says before its end that more is waiting."""
        with self._lock:
            full = rows >= rows_max and batch > self._query.get("batch", -1)
            self._fresh = self._fresh or full != self._full
            self._full = full

    def failed(self, problem: str) -> None:
        with self._lock:
            self._full = False
            self._problem, self._fresh = problem, True
            self._slices = {}
            self._pulse.started()

    def stalled_s(self, now_s: float, rows_planned: Callable[[], int]) -> float | None:
        """For how long the query has been silent, where that is too long; ``now_s`` never goes back."""
        with self._lock:
            silent_s = self._pulse.silent_s(now_s)
            if silent_s <= self._pulse.patience_s(0):
                return None
        rows = rows_planned()
        with self._lock:
            return silent_s if silent_s > self._pulse.patience_s(rows) else None

    def alarm(self, whose: str, sentence: str | None) -> None:
        """What does not work though the query runs; None when it works again. Each has its own, until it ends it."""
        with self._lock:
            before = self._alarms.get(whose)
            if sentence is None:
                self._alarms.pop(whose, None)
            else:
                self._alarms[whose] = sentence
            self._fresh = self._fresh or before != sentence

    def slices(self) -> frozenset[int]:
        """Those that this query has committed something of."""
        with self._lock:
            return frozenset(self._slices)

    def progress(self, now_s: float) -> NodeProgress | None:
        with self._lock:
            if not self._fresh:
                return None
            self._fresh = False
            return self._said(now_s)

    def farewell(self, now_s: float) -> NodeProgress:
        """The last word of a node that stops in good order."""
        with self._lock:
            return self._said(now_s, left=True)

    def _said(self, now_s: float, *, left: bool = False) -> NodeProgress:
        return NodeProgress(
            node=self._node,
            at_s=now_s,
            left=left,
            pid=os.getpid(),
            memory_mib=round(psutil.Process().memory_info().rss / 2**20),
            problem=self._problem,
            alarm=" ".join(self._alarms.values()) or None,
            ready=bool(self._query),
            query=self._query,
            committed_at_s=self._committed_at_s,
            totals=self._totals,
            rejects=dict(self._rejects.by_reason),
            rejected_devices=self._rejects.worst(),
            limit=RowsAtLimit(rows=self._capacity.rows, seconds=round(self._capacity.seconds, 3)),
            full=self._full,
            slices=dict(self._slices),
            batches=tuple(self._batches),
        )


def _identity(progress: dict[str, Any]) -> tuple[Any, ...]:
    """Reports of an idle query bear the number of the batch that comes next; their times tell them apart."""
    return progress.get("runId"), progress.get("batchId"), progress.get("timestamp")


def _batches(progress: dict[str, Any], *, at_limit: bool) -> tuple[Batch, ...]:
    """The one batch that a report is about; none where it had no rows, or where Spark does not say when it was."""
    rows, seconds = progress.get("numInputRows", 0), progress.get("batchDuration", 0) / 1e3
    with suppress(TypeError, ValueError):
        began_s = datetime.fromisoformat(progress.get("timestamp")).timestamp()  # type: ignore[arg-type]
        return (Batch(at_s=round(began_s + seconds, 3), rows=rows, seconds=seconds, at_limit=at_limit),) if rows else ()
    return ()


def _offset(text: Any) -> Offsets:
    if isinstance(text, str):
        text = json.loads(text)
    return text if isinstance(text, dict) else {}
