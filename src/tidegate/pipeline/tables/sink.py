"""The driver's half of a batch: refuse what is known already, commit the rest, keep what a successor needs.

Order of commits: rejects, readings, means. Readings are the truth; if the process dies before the means of a batch
are in, the next owner of the slice derives them from the readings. So the means may take their time: they are
committed in the background while Spark begins the next batch.

Batches may be held back for a while and committed together: the tables, not Spark's checkpoint, say what is done, so
what was held by a driver that died is read again.
"""

import pickle
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

from tidegate.model.errors import SequenceGapError, TidegateError
from tidegate.pipeline.tables.identities import KnownIdentities
from tidegate.pipeline.tables.screening import Screen
from tidegate.pipeline.tables.snapshots import load_known, save_known, too_many
from tidegate.pipeline.tables.tables import Mark, Step, Tables
from tidegate.pipeline.tables.writing import (
    DAY_US,
    SliceWork,
    TaskResult,
    TaskSettings,
    today,
    write_by_date,
    write_files,
)
from tidegate.pipeline.transforms.means import SUMMED, partials

# A slice with very many devices is written down less often, so that this never takes a large part of the time,
# unless so many entries have changed that they would fill memory.
_SNAPSHOT_SHARE = 200
_RECENT_ENTRIES_MAX = 500_000
# Maintenance removes files that no table knows after an hour at the earliest. A driver that slept must not commit one.
HELD_S_MAX = 1_800.0

Say = Callable[[str | None], None]


class Sink:
    """One query's way into the tables. A query that starts anew gets a new sink."""

    def __init__(
        self,
        tables: Tables,
        settings: TaskSettings,
        snapshot_s: float,
        owned: Callable[[], Mapping[int, int]] = dict,
        *,
        commit_s: float = 0.0,
        alarm: Say = lambda _: None,
        damaged: Say = lambda _: None,
    ) -> None:
        """``owned`` tells this node's slices and epochs: what is new among them is loaded while the tasks still run.

        Results are held back until ``commit_s`` have passed since the last commit. ``alarm`` hears what is wrong with
        identities that were written down, ``damaged`` what is wrong with files of the readings' table.
        """
        self._tables = tables
        self._settings = settings
        self._screen = Screen(tables.readings, settings)
        self._snapshot_s = snapshot_s
        self._commit_s = commit_s
        self._alarm = alarm
        self._damaged = damaged
        self._seen: dict[int, KnownIdentities] = {}
        self._marks: dict[int, Mark | None] = {}
        self._epochs: dict[int, int] = {}
        self._snapshot_due: dict[int, float] = {}
        self._problems: dict[int, str] = {}  # with the identities of slices, until they are written anew
        self._owned = owned
        self._loaded: dict[tuple[int, int, int], KnownIdentities] = {}
        self._background = ThreadPoolExecutor(2, thread_name_prefix="sink")
        self._pending: Future[None] | None = None
        self._lock = threading.Lock()  # between the query's thread and the one that commits what is overdue
        self._held: list[TaskResult] = []
        self._held_since_s = 0.0  # when the first of their batches began
        self._committed_s = 0.0
        for table in (tables.readings, tables.means, tables.rejected):
            table.refresh()

    def written(self, source: DataFrame) -> DataFrame:
        """The source's rows as files and one result per task, planned once instead of anew for every batch."""
        return source.mapInArrow(partial(write_files, self._settings), "result binary")

    def commit(self, batch: DataFrame) -> list[TaskResult]:
        """For ``foreachBatch`` of what ``written`` returned; the results that are in the tables now."""
        began_s = _uptime_s()
        loading = self._background.submit(self._load_ahead)
        try:
            rows = batch.collect()
        finally:
            loading.result()
        results = [pickle.loads(row.result) for row in rows]  # noqa: S301 - our own workers wrote it
        with self._lock:
            if not self._held:
                self._held_since_s = began_s
            self._held += results
        return self.flush()

    def flush(self, *, all_of_it: bool = False) -> list[TaskResult]:
        """Commit what has been held back for long enough, or all of it; the results that were."""
        with self._lock:
            is_due = all_of_it or time.monotonic() >= self._committed_s + self._commit_s
            if not self._held or not is_due:
                return []
            held, self._held = self._held, []
            if _uptime_s() - self._held_since_s > HELD_S_MAX:
                raise TidegateError(
                    f"A batch waited more than {HELD_S_MAX / 60:.0f} min to be committed, and maintenance may be about "
                    "to remove its files: it is read and written again."
                )
            self._committed_s = time.monotonic()
            self.commit_results(held)
            return held

    def commit_results(self, results: list[TaskResult]) -> None:
        """Commit results in their order; of one slice each goes on where the one before it ended."""
        self.settle()
        self._adopt(results)
        steps, marks = self._joined(results)
        uncommitted: list[Path] = []
        for result in results:
            self._screen.apply(result, self._seen, uncommitted)
            uncommitted += [self._settings.tables / "readings" / add.path for add in result.readings]
        self._commit_rejected([add for result in results for add in result.rejected], steps)
        self._tables.readings.commit([add for result in results for add in result.readings], steps, marks)
        self._marks.update(marks)
        means = [add for result in results for add in result.means]
        self._pending = self._background.submit(self._tables.means.commit, means, steps)
        self._save_snapshots(steps)
        self._tables.readings.damage.follow()
        self._damaged(self._tables.readings.damage.sentence)

    def settle(self) -> None:
        """Wait for the means of the last batch; raise what went wrong with them."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def close(self) -> None:
        self._background.shutdown(wait=True)

    def _joined(self, results: list[TaskResult]) -> tuple[dict[int, Step], dict[int, Mark]]:
        """The way of each slice through all results, and the message at its end. Raises where one does not go on."""
        steps: dict[int, Step] = {}
        marks: dict[int, Mark] = {}
        for slice_, work in ((slice_, work) for result in results for slice_, work in result.slices.items()):
            known = marks.get(slice_, self._marks.get(slice_))
            if work.before is not None and known is not None and work.before != known:
                raise SequenceGapError(
                    f"Slice {slice_} has another message at {work.step.after} than the one that was read there: the "
                    "log has been set back or replaced; the slice is taken up anew.",
                    where=f"slice {slice_}",
                    expected=known,
                    found=work.before,
                )
            before = steps.get(slice_)
            steps[slice_] = Step(work.step.epoch, before.after if before else work.step.after, work.step.to)
            marks[slice_] = work.last
        return steps, marks

    # -- slices that are new to this query

    def _adopt(self, results: list[TaskResult]) -> None:
        for slice_, work in ((slice_, work) for result in results for slice_, work in result.slices.items()):
            if self._epochs.get(slice_) != work.step.epoch:
                self._tables.readings.refresh()  # others may have written to the slice since this query last looked
                self._seen[slice_] = self._known(slice_, work)
                self._marks[slice_] = self._tables.readings.mark(slice_)
                self._repair_means(slice_, work.step)
                self._epochs[slice_] = work.step.epoch
                self._snapshot_due[slice_] = time.monotonic() + self._snapshot_s

    def _known(self, slice_: int, work: SliceWork) -> KnownIdentities:
        loaded = self._loaded.pop((slice_, work.step.epoch, work.step.after), None)
        return self._load(slice_, work.step.after) if loaded is None else loaded

    def _load(self, slice_: int, offset: int) -> KnownIdentities:
        self._tables.readings.refresh()  # a handle that waited long for its first batch cannot be asked any more
        mark = self._tables.readings.mark(slice_)
        day = max(today(), mark.stamp_us // DAY_US if mark else 0)
        day_min = min(today(), mark.stamp_us // DAY_US if mark else 0)
        loaded = load_known(self._tables, slice_, offset, day, self._settings.horizon_days, day_min=day_min)
        if loaded.problem is not None:
            self._tell(slice_, loaded.problem)
        return loaded.known

    def _tell(self, slice_: int, problem: str | None) -> None:
        """What is wrong with the identities of a slice, as long as it is; of several slices the last."""
        self._problems.pop(slice_, None)
        if problem is not None:
            self._problems[slice_] = problem
        self._alarm(next(reversed(self._problems.values()), None))

    def _load_ahead(self) -> None:
        """Load what slices that are new here will need. Runs beside the tasks, when nobody else uses the readings."""
        fresh = {slice_: epoch for slice_, epoch in self._owned().items() if self._epochs.get(slice_) != epoch}
        self._loaded = {key: seen for key, seen in self._loaded.items() if fresh.get(key[0]) == key[1]}
        if not fresh:
            return
        with self._lock:
            self._tables.readings.refresh()
            for slice_, epoch in fresh.items():
                at = self._tables.readings.position(slice_)
                key = (slice_, epoch, at.offset)
                if at.epoch == epoch and key not in self._loaded:
                    self._loaded[key] = self._load(slice_, at.offset)

    def _repair_means(self, slice_: int, step: Step) -> None:
        """Derive the means that a predecessor did not get to commit from the readings that it did."""
        self._tables.means.refresh()
        at = self._tables.means.position(slice_)
        if at.offset == step.after:
            return
        missing = self._tables.readings.rows(SUMMED, slice_, at.offset, step.after)
        adds = []
        if missing.num_rows:
            adds = write_by_date(self._settings, "means", partials(missing, self._settings.window_s))
        self._tables.means.commit(adds, {slice_: Step(step.epoch, at.offset, step.after)})

    # -- rejects

    def _commit_rejected(self, files: list[AddAction], steps: dict[int, Step]) -> None:
        """Rejects are committed first, so a replay may find its own: what the table has already is left out.

        A batch whose readings cannot follow must not be here before the one that it skips: those would be left out.
        """
        if not files:
            return
        self._tables.readings.refresh()
        self._tables.readings.check(steps)
        self._tables.rejected.refresh()
        positions = {slice_: self._tables.rejected.position(slice_) for slice_ in steps}
        ahead = {slice_: at.offset for slice_, at in positions.items() if at.offset > steps[slice_].after}
        if ahead:
            paths = [self._settings.tables / "rejected" / file.path for file in files]
            rows = pa.concat_tables([pq.ParquetFile(path).read(use_threads=False) for path in paths])
            for slice_, offset in ahead.items():
                stored = pc.and_(pc.equal(rows["slice"], slice_), pc.less_equal(rows["offset"], offset))
                rows = rows.filter(pc.invert(stored))
            files = write_by_date(self._settings, "rejected", rows)
        reached = {
            slice_: Step(step.epoch, positions[slice_].offset, max(step.to, positions[slice_].offset))
            for slice_, step in steps.items()
        }
        self._tables.rejected.commit(files, reached)

    # -- what a successor needs

    def _save_snapshots(self, steps: dict[int, Step]) -> None:
        """Write the identities of the slice that is most overdue, one slice a batch so that no batch takes long."""
        now = time.monotonic()
        due = [
            slice_
            for slice_ in steps
            if self._snapshot_due[slice_] <= now or self._seen[slice_].recent_entries > _RECENT_ENTRIES_MAX
        ]
        if due:
            slice_ = min(due, key=self._snapshot_due.__getitem__)
            mark = self._marks[slice_]
            # Two clocks have to agree that an entry is past the horizon: one of them may have stepped.
            day = min(today(), mark.stamp_us // DAY_US if mark else 0)
            cut_off = save_known(
                self._tables,
                slice_,
                steps[slice_].to,
                self._seen[slice_],
                day - self._settings.horizon_days,
                fsync=self._settings.fsync,
                horizon_days=self._settings.horizon_days,
            )
            self._tell(slice_, too_many(slice_, cut_off) if cut_off else None)
            took_s = time.monotonic() - now
            self._snapshot_due[slice_] = now + max(self._snapshot_s, took_s * _SNAPSHOT_SHARE)


def _uptime_s() -> float:
    """The one clock that nobody sets, and that goes on while a process or the whole machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
