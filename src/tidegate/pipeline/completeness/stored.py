"""What the tables have, by identity: the rows behind a position of each slice, and those that are asked for.

Rows are found by slice and offset in the newest version of a table, never in its log: a file that maintenance wrote
anew has the same rows, an entry that was cleaned away is not needed, and nothing is read twice.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.positions import incarnation_of, position
from tidegate.model.readings import TELEMETRY, Identified
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Run
from tidegate.pipeline.tables.damage import dataset
from tidegate.pipeline.tables.lookup import IDENTITY, boxed
from tidegate.pipeline.tables.tables import DATE, SCHEMAS, LogTable, Tables

# Of one slice in one step. A check that was away catches up in several.
MESSAGES_MAX = 500_000
_REJECTED = ["topic", "payload"]
_IDENTIFIED = msgspec.json.Decoder(Identified).decode
_BOOT, _SEQ = re.compile(rb'"boot"\s*:\s*(\d+)'), re.compile(rb'"seq"\s*:\s*(\d+)')


class NewRows(NamedTuple):
    """``positions`` is how far each slice has been read with these."""

    positions: dict[int, int]
    stored: list[Run]
    rejected: list[Run]


class StoredReadings:
    """Belongs to one thread. Errors of the tables pass through: what failed may be tried again."""

    def __init__(self, tables: Tables, slices: int, horizon_days: int) -> None:
        self._tables = tables
        self._slices = slices
        self._horizon = timedelta(days=horizon_days + 1)

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
        spans = {}
        for slice_, reached in self.positions().items():
            after = min(positions.get(slice_, reached), reached)
            # Between the end of a log that was set back and the beginning of the next there is nothing to step through.
            counted = max(after, position(incarnation_of(reached), 0))
            spans[slice_] = (after, min(reached, counted + MESSAGES_MAX))
        stored = _between(self._tables.readings, [*IDENTITY, "identified"], spans)
        rejected: list[Run] = []
        if any(to > after for after, to in spans.values()):
            # Rejects are committed before readings: the table has them up to these positions at least.
            self._tables.rejected.refresh()
            rejected = rejected_runs(_between(self._tables.rejected, _REJECTED, spans))
        named = stored.filter(pc.field("identified"))
        return NewRows({slice_: to for slice_, (_, to) in spans.items()}, runs_of(named), rejected)

    def look_up(self, wanted: Sequence[Open]) -> list[Run]:
        """Those of the wanted that the readings' table has, exactly, among others of the same devices."""
        found: list[Run] = []
        for slice_ in sorted({one.slice for one in wanted}):
            asked = [one for one in wanted if one.slice == slice_]
            found += runs_of(
                boxed(
                    self._tables.readings,
                    slice_,
                    device=sorted({one.device for one in asked}),
                    boot=(min(one.boot for one in asked), max(one.boot for one in asked)),
                    seq=(min(one.low for one in asked), max(one.high for one in asked)),
                    since=self._since(asked),
                )
            )
        return found

    def look_up_rejected(self, wanted: Sequence[Open]) -> list[Run]:
        """The same for what was rejected since shortly before they were acknowledged."""
        if not wanted:
            return []
        table = self._tables.rejected
        table.refresh()
        first = _date(min(one.since_s for one in wanted)) - timedelta(days=1)
        files = pa.table(table.handle.get_add_actions(flatten=True))
        if not files.num_rows:
            return []
        slices = pa.array(sorted({one.slice for one in wanted}), pa.int32())
        paths = files.filter(pc.field(f"partition.{DATE}") >= pa.scalar(first))["path"].to_pylist()
        rows = _rows(table, paths, _REJECTED, pc.field("slice").isin(slices))
        devices = {one.device for one in wanted}
        return [run for run in rejected_runs(rows) if run.device in devices]

    def _since(self, asked: Iterable[Open]) -> date:
        """A reading that came again may have been stored as long ago as identities are remembered."""
        return _date(min(one.since_s for one in asked)) - self._horizon


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


def rejected_runs(rows: pa.Table) -> list[Run]:
    """The identities that payloads name though they are no readings; one that was cut off names it at its beginning."""
    found = []
    for topic, payload in zip(rows["topic"].to_pylist(), rows["payload"].to_pylist(), strict=True):
        levels = topic.split("/", 2)
        identified = _identified(payload)
        if len(levels) > 1 and levels[0] == TELEMETRY and levels[1] and identified.is_complete:
            found.append(Run(levels[1], identified.boot, identified.seq, identified.seq))
    return found


def _identified(payload: bytes) -> Identified:
    try:
        return _IDENTIFIED(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        boot, seq = _BOOT.search(payload), _SEQ.search(payload)
        return Identified(int(boot[1]), int(seq[1])) if boot and seq else Identified()


def _between(table: LogTable, columns: list[str], spans: Mapping[int, tuple[int, int]]) -> pa.Table:
    """The rows of each slice behind the one offset, up to and with the other, as of the last refresh."""
    wanted = {slice_: span for slice_, span in spans.items() if span[1] > span[0]}
    files = pa.table(table.handle.get_add_actions(flatten=True)) if wanted else pa.table({})
    may_hold, fitting = pc.scalar(False), pc.scalar(False)
    for slice_, (after, to) in wanted.items():
        inside = (pc.field("min.slice") <= slice_) & (pc.field("max.slice") >= slice_)
        may_hold |= inside & (pc.field("min.offset") <= to) & (pc.field("max.offset") > after)
        fitting |= (pc.field("slice") == slice_) & (pc.field("offset") > after) & (pc.field("offset") <= to)
    paths = files.filter(may_hold)["path"].to_pylist() if files.num_rows else []
    return _rows(table, paths, columns, fitting)


def _rows(table: LogTable, paths: list[str], columns: list[str], fitting: pc.Expression) -> pa.Table:
    schema = SCHEMAS[table.name]

    def read(paths: list[str]) -> pa.Table:
        if not paths:
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        return dataset(paths, schema).to_table(columns, filter=fitting)

    return table.damage.read(paths, read)


def _date(at_s: float) -> date:
    return datetime.fromtimestamp(at_s, UTC).date()
