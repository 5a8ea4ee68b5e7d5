"""The driver's half of a batch: refuse what is known already, commit the rest, keep what a successor needs.

Order of commits: rejects, readings, means. Readings are the truth; if the process dies before the means of a batch
are in, the next owner of the slice derives them from the readings. So the means may take their time: they are
committed in the background while Spark begins the next batch.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidegate.pipeline.tables.identities import KnownIdentities, Run
from tidegate.pipeline.tables.snapshots import load_known, save_known
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import (
    SliceWork,
    TaskResult,
    TaskSettings,
    identity_groups,
    write_file,
    write_files,
    write_results,
)
from tidegate.pipeline.transforms.means import partials
from tidegate.pipeline.transforms.parsing import READINGS

# A slice with very many devices is written down less often, so that this never takes a large part of the time.
_SNAPSHOT_SHARE = 200


class Sink:
    """One query's way into the tables. A query that starts anew gets a new sink."""

    def __init__(
        self, tables: Tables, settings: TaskSettings, snapshot_s: float, owned: Callable[[], Mapping[int, int]] = dict
    ) -> None:
        """``owned`` tells this node's slices and epochs: what is new among them is loaded while the tasks still run."""
        self._tables = tables
        self._settings = settings
        self._snapshot_s = snapshot_s
        self._seen: dict[int, KnownIdentities] = {}
        self._epochs: dict[int, int] = {}
        self._snapshot_due: dict[int, float] = {}
        self._owned = owned
        self._loaded: dict[tuple[int, int, int], KnownIdentities] = {}
        self._background = ThreadPoolExecutor(2, thread_name_prefix="sink")
        self._pending: Future[None] | None = None
        self.duplicates = 0
        for table in (tables.readings, tables.means, tables.rejected):
            _ = table.handle  # the executors write into directories that exist

    def written(self, source: DataFrame) -> DataFrame:
        """The source's rows as files and one result per task, planned once instead of anew for every batch."""
        return source.mapInArrow(partial(write_files, self._settings), "result binary")

    def commit(self, batch: DataFrame) -> list[TaskResult]:
        """For ``foreachBatch`` of what ``written`` returned."""
        loading = self._background.submit(self._load_ahead)
        try:
            rows = batch.collect()
        finally:
            loading.result()
        results = [pickle.loads(row.result) for row in rows]  # noqa: S301 - our own workers wrote it
        if results:
            self.commit_results(results)
        return results

    def commit_results(self, results: list[TaskResult]) -> None:
        self.settle()
        work = {slice_: done for result in results for slice_, done in result.slices.items()}
        self._adopt(work)
        for result in results:
            repeated = self._repeated(result)
            if repeated:
                self._rewrite(result, repeated)
        steps = {slice_: done.step for slice_, done in work.items()}
        self._commit_rejected(results, steps)
        self._tables.readings.commit([result.readings for result in results if result.readings], steps)
        means = [result.means for result in results if result.means]
        self._pending = self._background.submit(self._tables.means.commit, means, steps)
        self._save_snapshots(steps)

    def settle(self) -> None:
        """Wait for the means of the last batch; raise what went wrong with them."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def close(self) -> None:
        self._background.shutdown(wait=True)

    # -- slices that are new to this query

    def _adopt(self, work: dict[int, SliceWork]) -> None:
        for slice_, done in work.items():
            if self._epochs.get(slice_) != done.step.epoch:
                loaded = self._loaded.pop((slice_, done.step.epoch, done.step.after), None)
                self._seen[slice_] = loaded or load_known(self._tables, slice_, done.step.after)
                self._repair_means(slice_, done.step)
                self._epochs[slice_] = done.step.epoch
                self._snapshot_due[slice_] = time.monotonic() + self._snapshot_s

    def _load_ahead(self) -> None:
        """Load what slices that are new here will need. Runs beside the tasks, when nobody else uses the readings."""
        fresh = {slice_: epoch for slice_, epoch in self._owned().items() if self._epochs.get(slice_) != epoch}
        self._loaded = {key: seen for key, seen in self._loaded.items() if fresh.get(key[0]) == key[1]}
        if not fresh:
            return
        self._tables.readings.refresh()
        for slice_, epoch in fresh.items():
            at = self._tables.readings.position(slice_)
            key = (slice_, epoch, at.offset)
            if at.epoch == epoch and key not in self._loaded:
                self._loaded[key] = load_known(self._tables, slice_, at.offset)

    def _repair_means(self, slice_: int, step: Step) -> None:
        """Derive the means that a predecessor did not get to commit from the readings that it did."""
        self._tables.means.refresh()
        at = self._tables.means.position(slice_)
        if at.offset == step.after:
            return
        missing = self._tables.readings.rows(READINGS.names, slice_, at.offset, step.after)
        adds = []
        if missing.num_rows:
            adds = [write_file(self._settings, "means", partials(missing, self._settings.window_s))]
        self._tables.means.commit(adds, {slice_: Step(step.epoch, at.offset, step.after)})

    # -- identities that are in the table already

    def _repeated(self, result: TaskResult) -> list[Run]:
        repeated: list[Run] = []
        for slice_, runs in result.runs.items():
            seen = self._seen[slice_]
            for run in runs:
                verdict = seen.add(run)
                repeated.extend(verdict.known)
                for doubtful in verdict.doubtful:
                    repeated.extend(self._stored(doubtful))
        return repeated

    def _stored(self, run: Run) -> Iterable[Run]:
        """Look a forgotten part of a device's past up in the table itself: slow, exact, rare."""
        wanted = [("device", "=", run.device), ("boot", "=", run.boot), ("seq", ">=", run.low), ("seq", "<=", run.high)]
        found = self._tables.readings.refresh().to_pyarrow_table(columns=["seq"], filters=wanted)
        return [Run(run.device, run.boot, seq, seq) for seq in found["seq"].to_pylist()]

    def _rewrite(self, result: TaskResult, repeated: list[Run]) -> None:
        """Write a task's files again without the readings that the table has. Retransmissions are few; so is this."""
        if result.readings is None:
            return
        old = self._settings.tables / "readings" / result.readings.path
        rows = pq.read_table(old).combine_chunks().to_batches()[0]
        by_identity: dict[tuple[str, int], list[Run]] = {}
        for run in repeated:
            by_identity.setdefault((run.device, run.boot), []).append(run)
        keep = np.ones(rows.num_rows, bool)
        for _, device, boot, sequences, places in identity_groups(rows):
            for run in by_identity.get((device, boot), ()):
                keep[places[(sequences >= run.low) & (sequences <= run.high)]] = False
        dropped = int((~keep).sum())
        self.duplicates += dropped
        result.repeats += dropped
        stale = [old]
        if result.means is not None:
            stale.append(self._settings.tables / "means" / result.means.path)
        write_results(self._settings, pa.Table.from_batches([rows.filter(pa.array(keep))]), result)
        for path in stale:
            path.unlink(missing_ok=True)

    # -- rejects

    def _commit_rejected(self, results: list[TaskResult], steps: dict[int, Step]) -> None:
        """Rejects are committed first, so a replay may find its own: what the table has already is left out."""
        files = [result.rejected for result in results if result.rejected]
        if not files:
            return
        self._tables.rejected.refresh()
        positions = {slice_: self._tables.rejected.position(slice_) for slice_ in steps}
        ahead = {slice_: at.offset for slice_, at in positions.items() if at.offset > steps[slice_].after}
        if ahead:
            rows = pa.concat_tables([pq.read_table(self._settings.tables / "rejected" / file.path) for file in files])
            for slice_, offset in ahead.items():
                stored = pc.and_(pc.equal(rows["slice"], slice_), pc.less_equal(rows["offset"], offset))
                rows = rows.filter(pc.invert(stored))
            files = [write_file(self._settings, "rejected", rows)] if rows.num_rows else []
        reached = {
            slice_: Step(step.epoch, positions[slice_].offset, max(step.to, positions[slice_].offset))
            for slice_, step in steps.items()
        }
        self._tables.rejected.commit(files, reached)

    # -- what a successor needs

    def _save_snapshots(self, steps: dict[int, Step]) -> None:
        """Write the identities of the slice that is most overdue, one slice a batch so that no batch takes long."""
        now = time.monotonic()
        due = [slice_ for slice_ in steps if self._snapshot_due[slice_] <= now]
        if due:
            slice_ = min(due, key=self._snapshot_due.__getitem__)
            save_known(self._tables, slice_, steps[slice_].to, self._seen[slice_])
            took_s = time.monotonic() - now
            self._snapshot_due[slice_] = now + max(self._snapshot_s, took_s * _SNAPSHOT_SHARE)
