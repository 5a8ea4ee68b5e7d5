"""What was rejected, by the identity that a payload names though it is no reading.

A day's rejects may be millions, most of them of a device that nobody asks for. So the topics are read first, and
payloads only of files where a topic is one of a wanted device.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.readings import TELEMETRY, Identified
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Interval, Run, joined, without
from tidegate.pipeline.completeness.scanning import files_of, pieces
from tidegate.pipeline.tables.tables import DATE, LogTable

COLUMNS = ["topic", "payload"]
_IDENTIFIED = msgspec.json.Decoder(Identified).decode
_BOOT, _SEQ = re.compile(rb'"boot"\s*:\s*(\d+)'), re.compile(rb'"seq"\s*:\s*(\d+)')
_ABOVE_LEVEL = "0"  # follows the slash in the order of characters: above all topics of a device


def rejected_runs(rows: pa.Table) -> list[Run]:
    """The identities that payloads name though they are no readings; one that was cut off names it at its beginning."""
    found: dict[tuple[str, int], list[Interval]] = {}
    for topic, payload in zip(rows["topic"].to_pylist(), rows["payload"].to_pylist(), strict=True):
        levels = topic.split("/", 2)
        identified = _identified(payload)
        if len(levels) > 1 and levels[0] == TELEMETRY and levels[1] and identified.is_complete:
            found.setdefault((levels[1], identified.boot), []).append((identified.seq, identified.seq))
    return [Run(*key, *run) for key, runs in found.items() for run in joined(runs)]


def look_up(table: LogTable, wanted: Sequence[Open], since: date) -> Iterator[Run]:
    """Those of the wanted that were rejected since that day, exactly. The table is as of its last refresh."""
    devices = {one.device for one in wanted}
    fitting = pc.field("slice").isin(pa.array(sorted({one.slice for one in wanted}), pa.int32()))
    names = pa.array(devices, pa.string())

    def is_named(path: str) -> bool:
        found = pieces(table, [path], ["slice", "topic"], fitting)
        return any(_of_devices(rows, names).num_rows for rows in found)

    paths = [path for path in _may_hold(files_of(table), devices, since) if is_named(path)]
    asked = _intervals(wanted)
    for rows in pieces(table, paths, ["slice", *COLUMNS], fitting):
        yield from _asked_for(rejected_runs(_of_devices(rows, names)), asked)


def _may_hold(files: pa.Table, devices: Collection[str], since: date) -> list[str]:
    """Files that may hold a topic of these devices, by their statistics where they have some."""
    if not files.num_rows:
        return []
    fitting = pc.field(f"partition.{DATE}") >= pa.scalar(since)
    lowest, highest = f"{TELEMETRY}/{min(devices)}", f"{TELEMETRY}/{max(devices)}{_ABOVE_LEVEL}"
    if {"min.topic", "max.topic"} <= set(files.column_names):
        fitting &= pc.field("min.topic").is_null() | (pc.field("min.topic") <= highest)
        fitting &= pc.field("max.topic").is_null() | (pc.field("max.topic") >= lowest)
    paths: list[str] = files.filter(fitting)["path"].to_pylist()
    return paths


def _of_devices(rows: pa.Table, devices: pa.Array) -> pa.Table:
    """Rows whose topic has one of these devices as its second level. A slash more, and every topic has one."""
    levels = pc.split_pattern(pc.binary_join_element_wise(rows["topic"], "", "/"), "/", max_splits=2)
    return rows.filter(pc.is_in(pc.list_element(levels, 1), devices))


def _intervals(wanted: Sequence[Open]) -> dict[tuple[str, int], list[Interval]]:
    found: dict[tuple[str, int], list[Interval]] = {}
    for one in wanted:
        found.setdefault((one.device, one.boot), []).append((one.low, one.high))
    return {key: joined(intervals) for key, intervals in found.items()}


def _asked_for(runs: Sequence[Run], asked: Mapping[tuple[str, int], list[Interval]]) -> Iterator[Run]:
    for run in runs:
        if without(run.low, run.high, asked.get((run.device, run.boot), [])) != [(run.low, run.high)]:
            yield run


def _identified(payload: bytes) -> Identified:
    try:
        return _IDENTIFIED(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        boot, seq = _BOOT.search(payload), _SEQ.search(payload)
        return Identified(int(boot[1]), int(seq[1])) if boot and seq else Identified()
