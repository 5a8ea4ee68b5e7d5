"""What the tables have, by identity: the rows behind a position of each slice, and those that are asked for.

Rows are found by slice and offset in the newest version of a table, never in its log: a file that maintenance wrote
anew has the same rows, an entry that was cleaned away is not needed, and nothing is read twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.positions import incarnation_of, position
from tidegate.pipeline.completeness import rejects
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Run
from tidegate.pipeline.completeness.scanning import files_of, pieces
from tidegate.pipeline.sources.sharing import share_rows
from tidegate.pipeline.tables.lookup import IDENTITY
from tidegate.pipeline.tables.tables import DATE, LogTable, Tables

# Of all slices in one step, as far as last time's rows tell their size. A check that was away catches up in several.
MESSAGES_MAX = 500_000
BYTES_MAX = 256 << 20
_A_DAY = timedelta(days=1)
_TIME_S_MAX = 9e9  # the year 2255: no date is later


class NewRows(NamedTuple):
    """``positions`` is how far each slice has been read once all of these have been taken, stored ones first."""

    positions: dict[int, int]
    stored: Iterable[Run]
    rejected: Iterable[Run]


class StoredReadings:
    """Belongs to one thread. Errors of the tables pass through: what failed may be tried again."""

    def __init__(self, tables: Tables, slices: int, horizon_days: int) -> None:
        self._tables = tables
        self._slices = slices
        self._horizon = timedelta(days=horizon_days + 1)
        self._row_bytes = 1.0

    def damage(self) -> tuple[str, ...]:
        """What of the tables cannot be read, in sentences: its readings count as missing."""
        tables = (self._tables.readings, self._tables.rejected)
        for table in tables:
            table.damage.follow()
        return tuple(table.damage.sentence for table in tables if table.damage.sentence is not None)

    def positions(self) -> dict[int, int]:
        """How far the readings' table has each slice."""
        readings = self._tables.readings
        readings.refresh()
        return {slice_: readings.position(slice_).offset for slice_ in range(self._slices)}

    def since(self, positions: Mapping[int, int]) -> NewRows:
        """What came behind these positions. A slice that is not named begins where the table has it now."""
        reached = self.positions()
        after = {slice_: min(positions.get(slice_, at), at) for slice_, at in reached.items()}
        # Between the end of a log that was set back and the beginning of the next there is nothing to step through.
        counted = {slice_: max(after[slice_], position(incarnation_of(at), 0)) for slice_, at in reached.items()}
        waiting = {slice_: at - counted[slice_] for slice_, at in reached.items()}
        granted = share_rows(waiting, dict.fromkeys(waiting, self._row_bytes), MESSAGES_MAX, BYTES_MAX)
        spans = {slice_: (after[slice_], counted[slice_] + granted[slice_]) for slice_ in reached}
        if any(to > start for start, to in spans.values()):
            # Rejects are committed before readings: the table has them up to these positions at least.
            self._tables.rejected.refresh()
        return NewRows({slice_: to for slice_, (_, to) in spans.items()}, self._stored(spans), self._rejected(spans))

    def _stored(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Run]:
        self._row_bytes = 1.0
        for rows in _between(self._tables.readings, [*IDENTITY, "identified"], spans):
            self._row_bytes = max(self._row_bytes, rows.nbytes / rows.num_rows)
            yield from runs_of(rows.filter(pc.field("identified")))

    def _rejected(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Run]:
        for rows in _between(self._tables.rejected, rejects.COLUMNS, spans):
            self._row_bytes = max(self._row_bytes, rows.nbytes / rows.num_rows)
            yield from rejects.rejected_runs(rows)

    def look_up(self, wanted: Sequence[Open]) -> Iterator[Run]:
        """Those of the wanted that the readings' table has, exactly, among others of the same devices."""
        if wanted:
            self._tables.readings.refresh()
            since = self._earliest(wanted) - self._horizon
            for slice_ in sorted({one.slice for one in wanted}):
                for rows in _boxed(self._tables.readings, [one for one in wanted if one.slice == slice_], since):
                    yield from runs_of(rows)

    def look_up_rejected(self, wanted: Sequence[Open]) -> Iterator[Run]:
        """The same for what was rejected since shortly before they were acknowledged."""
        if wanted:
            self._tables.rejected.refresh()
            yield from rejects.look_up(self._tables.rejected, wanted, self._earliest(wanted) - _A_DAY)

    def _earliest(self, wanted: Sequence[Open]) -> date:
        """When the first of these was acknowledged, at the latest.

        The bus's clock says when, the brokers' clock on what date a row is. So that they need not agree, it was not
        later than the newest row.
        """
        acknowledged = _date(min(one.since_s for one in wanted))
        tables = (self._tables.readings, self._tables.rejected)
        days = [pc.max(files[f"partition.{DATE}"]).as_py() for files in map(files_of, tables) if files.num_rows]
        return min(acknowledged, max(days, default=acknowledged))


def runs_of(rows: pa.Table) -> list[Run]:
    """The identities of rows as runs, whatever their order and however often each is there."""
    if not rows.num_rows:
        return []
    devices = rows["device"].combine_chunks().dictionary_encode()
    names = devices.dictionary.to_pylist()
    numbers = devices.indices.to_numpy(zero_copy_only=False)
    boots, sequences = (rows[name].to_numpy().astype(np.int64) for name in ("boot", "seq"))
    order = np.lexsort((sequences, boots, numbers))
    numbers, boots, sequences = numbers[order], boots[order], sequences[order]
    apart = (numbers[1:] != numbers[:-1]) | (boots[1:] != boots[:-1]) | (np.diff(sequences) > 1)
    starts = np.flatnonzero(np.r_[True, apart])
    stops = np.r_[starts[1:], len(numbers)] - 1
    columns = (numbers[starts], boots[starts], sequences[starts], sequences[stops])
    return [Run(names[n], boot, low, high) for n, boot, low, high in zip(*(c.tolist() for c in columns), strict=True)]


def _boxed(table: LogTable, asked: Sequence[Open], since: date) -> Iterator[pa.Table]:
    """The identities that a slice has of the asked devices between the lowest and the highest asked for."""
    slice_, devices = asked[0].slice, sorted({one.device for one in asked})
    bounds = {
        "boot": (min(one.boot for one in asked), max(one.boot for one in asked)),
        "seq": (min(one.low for one in asked), max(one.high for one in asked)),
    }
    may_hold = pc.field(f"partition.{DATE}") >= pa.scalar(since)
    may_hold &= (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
    for name, (low, high) in {"device": (devices[0], devices[-1]), **bounds}.items():
        may_hold &= (pc.field(f"min.{name}") <= high) & (pc.field(f"max.{name}") >= low)
    fitting = (pc.field("slice") == slice_) & pc.field("device").isin(pa.array(devices, pa.string()))
    for name, (low, high) in bounds.items():
        fitting &= (pc.field(name) >= low) & (pc.field(name) <= high)
    return pieces(table, _paths(table, may_hold), ["slice", *IDENTITY], fitting)


def _between(table: LogTable, columns: list[str], spans: Mapping[int, tuple[int, int]]) -> Iterator[pa.Table]:
    """The rows of each slice behind the one offset, up to and with the other, as of the last refresh."""
    wanted = {slice_: span for slice_, span in spans.items() if span[1] > span[0]}
    may_hold, fitting = pc.scalar(False), pc.scalar(False)
    for slice_, (after, to) in wanted.items():
        inside = (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
        may_hold |= inside & (pc.field("min.offset") <= to) & (pc.field("max.offset") > after)
        fitting |= (pc.field("slice") == slice_) & (pc.field("offset") > after) & (pc.field("offset") <= to)
    return pieces(table, _paths(table, may_hold) if wanted else [], ["slice", "offset", *columns], fitting)


def _paths(table: LogTable, may_hold: pc.Expression) -> list[str]:
    files = files_of(table)
    paths: list[str] = files.filter(may_hold)["path"].to_pylist() if files.num_rows else []
    return paths


def _date(at_s: float) -> date:
    return datetime.fromtimestamp(min(max(at_s, 0.0), _TIME_S_MAX), UTC).date()
