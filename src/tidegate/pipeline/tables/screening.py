"""What of a task's readings the table has already: dropped as repeats, or rejected if they say something else.

Memory (``identities``) says of nearly all readings that they are new. Of the others the table itself is asked, once for
the whole batch: a repeat is left out, and another payload under a used identity goes to ``rejected``.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from tidegate.pipeline.tables.conflicts import Conflicts, conflicting, rejects_of
from tidegate.pipeline.tables.identified import Identities, identities_of
from tidegate.pipeline.tables.identities import Doubtful, Keys, KnownIdentities, keys_of
from tidegate.pipeline.tables.lookup import IDENTITY, highest, matching
from tidegate.pipeline.tables.tables import LogTable
from tidegate.pipeline.tables.writing import (
    DAY_US,
    EPOCH,
    TaskResult,
    TaskSettings,
    count_rejects,
    today,
    write_by_date,
    write_results,
)
from tidegate.pipeline.transforms.parsing import READINGS, REJECTED


class Screen:
    """Works on one table of readings, for tasks with these settings."""

    def __init__(self, readings: LogTable, settings: TaskSettings) -> None:
        self._readings = readings
        self._settings = settings

    def apply(self, result: TaskResult, known: Mapping[int, KnownIdentities], uncommitted: list[Path]) -> None:
        """Change the result so that it adds nothing the table has. ``uncommitted``: files to be committed with it."""
        suspects: dict[int, list[Doubtful]] = {}
        rows: pa.Table | None = None
        for slice_, runs in result.runs.items():
            keys, day = np.unique(runs.keys), _day(result, slice_)
            absent = known[slice_].absent(keys, min(day, today()))
            if absent.size:
                rows = self._rows(result) if rows is None else rows
                known[slice_].learn(absent, self._highest(slice_, absent, rows, day), day)
            doubtful = known[slice_].add(runs, day)
            if doubtful:
                suspects[slice_] = doubtful
        if suspects or result.disputed:
            self._judge(result, self._rows(result) if rows is None else rows, suspects, uncommitted)

    def _rows(self, result: TaskResult) -> pa.Table:
        return self._read(result.readings)

    def _read(self, adds: list[AddAction]) -> pa.Table:
        files = (pq.ParquetFile(self._settings.tables / "readings" / add.path) for add in adds)
        return pa.concat_tables([file.read(use_threads=False) for file in files]).combine_chunks()

    def _since(self, day: int) -> date:
        """The first date that can hold what the horizon covers, by the clock that is behind: one may have stepped."""
        return EPOCH + timedelta(days=min(day, today()) - self._settings.horizon_days - 1)

    def _highest(self, slice_: int, absent: Keys, rows: pa.Table, day: int) -> np.ndarray:
        """Ask the table how far each of those was of which memory knows nothing though it should; -1: it has none."""
        found = identities_of(rows)
        mine = np.isin(found.keys, absent) & (found.slices == slice_)
        devices = rows["device"].take(pa.array(np.unique(found.rows[mine]))).unique()
        stored = highest(self._readings, slice_, devices, self._since(day))
        highs = np.full(len(absent), -1, np.int64)
        if stored.num_rows:
            keys = keys_of(stored["device"].to_pylist(), stored["boot"].to_numpy().astype(np.int64))
            places = np.minimum(np.searchsorted(absent, keys), len(absent) - 1)
            is_asked = absent[places] == keys
            np.maximum.at(highs, places[is_asked], stored["seq"].to_numpy()[is_asked])
        return highs

    def _judge(
        self,
        result: TaskResult,
        rows: pa.Table,
        suspects: dict[int, list[Doubtful]],
        uncommitted: list[Path],
    ) -> None:
        found = identities_of(rows)
        rejects, dropped, truth = [REJECTED.empty_table()], [np.empty(0, np.int64)], [READINGS.empty_table()]
        for slice_, doubtful in suspects.items():
            asked = _suspected(found, slice_, doubtful)
            since = self._since(_day(result, slice_))
            asked_rows = rows.take(pa.array(asked))
            stored = _Stored(asked_rows, matching(self._readings, slice_, asked_rows, since, uncommitted))
            repeats = asked[stored.places]
            conflicts = conflicting(rows.take(pa.array(repeats)), stored.rows)
            rejects.append(rejects_of(conflicts))
            dropped.append(repeats)
            truth.append(stored.rows)
            result.repeats += len(repeats) - conflicts.rows.num_rows
        if result.disputed:
            rejects.append(rejects_of(self._settle(result, rows, pa.concat_tables(truth))))
        self._rewrite(result, rows, np.concatenate(dropped), pa.concat_tables(rejects))

    def _settle(self, result: TaskResult, rows: pa.Table, stored: pa.Table) -> Conflicts:
        """What of the disputed readings is none: what the table has counts, and only then what came first."""
        disputed = self._read(result.disputed)
        firsts = rows.filter(pc.is_in(rows["device"], pc.unique(disputed["device"]))).cast(READINGS)
        truth = _Stored(disputed, pa.concat_tables([firsts, stored]))
        conflicts = conflicting(disputed.take(pa.array(truth.places)), truth.rows)
        result.repeats += disputed.num_rows - conflicts.rows.num_rows
        for add in result.disputed:
            (self._settings.tables / "readings" / add.path).unlink(missing_ok=True)
        result.disputed = []
        return conflicts

    def _rewrite(self, result: TaskResult, rows: pa.Table, dropped: np.ndarray, rejects: pa.Table) -> None:
        """Write a task's files again without what the table has. Retransmissions are few; so is this."""
        if rejects.num_rows:
            count_rejects(rejects, result)
            result.rejected += write_by_date(self._settings, "rejected", rejects)
        if not dropped.size:
            return
        stale = [("readings", add.path) for add in result.readings] + [("means", add.path) for add in result.means]
        keep = np.ones(rows.num_rows, bool)
        keep[dropped] = False
        write_results(self._settings, rows.filter(pa.array(keep)), result)
        for table, path in stale:
            (self._settings.tables / table / path).unlink(missing_ok=True)


class _Stored:
    """For some of the asked rows, by their places, the stored row of the same identity."""

    def __init__(self, asked: pa.Table, table: pa.Table) -> None:
        # Of several, the last.
        by_identity = {name: place for place, name in enumerate(_identities(table))}
        pairs = [(place, by_identity[name]) for place, name in enumerate(_identities(asked)) if name in by_identity]
        self.places = np.array([place for place, _ in pairs], np.int64)
        self.rows = table.take(pa.array([place for _, place in pairs], pa.int64()))


def _identities(table: pa.Table) -> list[tuple[str, int, int]]:
    return list(zip(*(table[name].to_pylist() for name in IDENTITY), strict=True))


def _suspected(found: Identities, slice_: int, doubtful: list[Doubtful]) -> np.ndarray:
    """The rows of doubtful parts."""
    picked = [np.empty(0, np.int64)]
    for part in doubtful:
        key = np.uint64(part.key)
        start, stop = (int(np.searchsorted(found.keys, key, side)) for side in ("left", "right"))
        inside = (found.sequences[start:stop] >= part.low) & (found.sequences[start:stop] <= part.high)
        picked.append(found.rows[start:stop][inside & (found.slices[start:stop] == slice_)])
    return np.unique(np.concatenate(picked))


def _day(result: TaskResult, slice_: int) -> int:
    return result.slices[slice_].last.stamp_us // DAY_US
