"""The slices of the brokers' log as a streaming data source for Spark.

An offset maps each slice to ``[epoch, from, to]``: under which epoch this query claimed it, where the table's log said
to begin, and how far this batch goes, as positions (``model/positions.py``). Slices come and go between two batches;
when Spark asks for the next offset, everything before it is read, so that is the moment to let a slice go, once the
tables have it, and to take one on.

The message that a batch begins behind is read along, so that the driver can compare it with the one it read before: a
log that was set back in between must not pass for the same one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tidegate.brokers.opening import open_log
from tidegate.brokers.port import SlicedLog, SliceRange
from tidegate.machine import evidence
from tidegate.model.installation import LogAddress
from tidegate.model.positions import sequence_of
from tidegate.pipeline.sources.planner import Offset, Planner
from tidegate.pipeline.sources.rows import record_batch
from tidegate.pipeline.sources.sharing import share_rows

# Below this a second task costs more than it takes off the first.
PARTITION_ROWS_MIN = 4_000
# A message that is larger takes as long as several of this size.
ROW_BYTES = 1_024


class SliceRanges(InputPartition):
    """What one task reads: several slices over one connection."""

    def __init__(self, log: LogAddress, ranges: list[tuple[int, int, int, int]], unproven: frozenset[int]) -> None:
        self.log = log
        self.ranges = ranges  # slice, epoch, after, to
        self.unproven = unproven  # slices that have no message at ``after``


# The schema of ``rows.SCHEMA`` in Spark's words.
COLUMNS = "slice int, epoch int, offset bigint, after bigint, topic string, arrived timestamp, payload binary"


class SliceSource(DataSource):
    """``spark.readStream.format("tidegate")`` with options ``state``, ``node``, ``partitions``, ``rows_per_batch``,
    ``bytes_per_batch``, ``evidence``, a directory for errors of the processes that Spark starts, and ``doubted``, a
    message of each slice that an earlier query did not get (JSON)."""

    @classmethod
    def name(cls) -> str:
        return "tidegate"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's names
        return SliceReader(self.options)


class SliceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in a process of its own; reads them in the executors' workers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._node = options["node"]
        self._state = Path(options["state"])
        self._partitions = int(options.get("partitions", "2"))
        self._rows_max = int(options.get("rows_per_batch", "400000"))
        self._bytes_max = int(options.get("bytes_per_batch", str(256 << 20)))
        self._evidence = options.get("evidence")
        self._doubted = {int(s): sequence for s, sequence in json.loads(options.get("doubted", "{}")).items()}
        self._planner: Planner | None = None
        self._final: dict[int, int] | None = None
        self._cut: frozenset[int] = frozenset()  # slices that the limit left something of

    @property
    def planner(self) -> Planner:
        if self._planner is None:
            self._planner = Planner(self._state, self._node, self._doubted, self._tell)
        return self._planner

    def _tell(self, sentences: Sequence[str]) -> None:
        if self._evidence is not None:
            evidence.tell(Path(self._evidence), sentences)

    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end: what arrives later belongs to a later run."""
        self._final = self.planner.ends_of_all()

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The ends of the slices as last asked for: what the query's progress shows as its lag.

        An end has no epoch; in its place stands 1 where the limit of rows or bytes cut the slice short, else 0.
        """
        ends = self.planner.last_ends
        return {str(slice_): [int(slice_ in self._cut), 0, end] for slice_, end in sorted(ends.items())} or None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        with evidence.left_in(self._evidence):
            return self._latest_offset(start, limit)

    def _latest_offset(self, start: Offset, limit: ReadLimit) -> Offset:
        held = self.planner.held_slices(start)
        ends = self.planner.ends({slice_: at[2] for slice_, at in held.items()})
        if self._final is not None:
            ends = {slice_: min(end, self._final.get(slice_, end)) for slice_, end in ends.items()}
        reach = {slice_: max(at[2], ends[slice_]) for slice_, at in held.items()}
        if not isinstance(limit, ReadAllAvailable):
            rows_max = getattr(limit, "max_rows", self._rows_max)
            waiting = {slice_: reach[slice_] - at[2] for slice_, at in held.items()}
            shares = share_rows(waiting, self.planner.message_bytes, rows_max, self._bytes_max)
            reach = {slice_: at[2] + shares[slice_] for slice_, at in held.items()}
        self._cut = frozenset(slice_ for slice_, to in reach.items() if to < ends[slice_])
        return {str(slice_): [at[0], at[1], reach[slice_]] for slice_, at in sorted(held.items())}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        wanted = []
        for name, (epoch, begin, to) in end.items():
            before = start.get(name)
            after = before[2] if before and before[0] == epoch else begin
            if to > after:
                wanted.append((int(name), epoch, after, to))
        unproven = frozenset(slice_ for slice_, _, after, _ in wanted if not self.planner.is_proven(slice_, after))
        groups = group_ranges(wanted, self._partitions, self.planner.message_bytes)
        return [SliceRanges(self.planner.log_address, group, unproven) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, SliceRanges)
        places = {slice_: (epoch, after) for slice_, epoch, after, _ in partition.ranges}
        wanted = [
            SliceRange(slice_, sequence_of(after) - (slice_ not in partition.unproven), sequence_of(to))
            for slice_, _, after, to in partition.ranges
        ]
        # Closed at once, whatever ends the loop: an answer under way must not be taken for one of the next read's.
        with evidence.left_in(self._evidence), closing(_worker_log(partition.log).read(wanted)) as read:
            for rows in read:
                yield record_batch(rows, *places[rows.slice])

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()


def group_ranges(
    ranges: list[tuple[int, int, int, int]], groups: int, message_bytes: Mapping[int, float]
) -> list[list[tuple[int, int, int, int]]]:
    """About one partition per core, one for all where there is little to do: slices spread by their rows and bytes."""

    def load(wanted: tuple[int, int, int, int]) -> float:
        slice_, _, after, to = wanted
        return (to - after) * max(1.0, message_bytes.get(slice_, 0.0) / ROW_BYTES)

    useful = max(1, min(groups, len(ranges), int(sum(map(load, ranges)) / PARTITION_ROWS_MIN)))
    filled: list[list[tuple[int, int, int, int]]] = [[] for _ in range(useful if ranges else 0)]
    burden = [0.0] * len(filled)
    for wanted in sorted(ranges, key=load, reverse=True):
        lightest = burden.index(min(burden))
        filled[lightest].append(wanted)
        burden[lightest] += load(wanted)
    return filled


_logs: dict[LogAddress, SlicedLog] = {}


def _worker_log(address: LogAddress) -> SlicedLog:
    """A worker process serves many batches: its connection stays open between them."""
    if address not in _logs:
        _logs[address] = open_log(address, name="tidegate-worker")
    return _logs[address]
