"""The slices of the brokers' log as a streaming data source for Spark.

An offset maps each slice to ``[epoch, from, to]``: under which epoch this query claimed it, where the table's log said
to begin, and how far this batch goes. Slices come and go between two batches; when Spark asks for the next offset,
everything before it is committed, so that is the moment to let a slice go and to take one on.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.brokers.port import Rows, SlicedLog, SliceRange
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.control.slicing.transfer import Assignment
from tidegate.machine import evidence
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, SequenceGapError
from tidegate.model.installation import LogAddress
from tidegate.pipeline.tables.tables import Tables

_STAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("slice", pa.int32()),
        ("epoch", pa.int32()),
        ("offset", pa.int64()),
        ("topic", pa.string()),
        ("arrived", _STAMP),
        ("payload", pa.binary()),
    ]
)
Offset = dict[str, list[int]]
# Below this a second task costs more than it takes off the first.
PARTITION_ROWS_MIN = 4_000
PROMISED_S_MAX = 0.3
PROMISED_POLL_S = 0.02


class SliceRanges(InputPartition):
    """What one task reads: several slices over one connection."""

    def __init__(self, log: LogAddress, ranges: list[tuple[int, int, int, int]]) -> None:
        self.log = log
        self.ranges = ranges  # slice, epoch, after, to


class SliceSource(DataSource):
    """``spark.readStream.format("tidegate")`` with options ``state``, ``node``, ``partitions``, ``rows_per_batch``
    and ``evidence``, a directory for errors of the processes that Spark starts."""

    @classmethod
    def name(cls) -> str:
        return "tidegate"

    def schema(self) -> str:
        return "slice int, epoch int, offset bigint, topic string, arrived timestamp, payload binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's names
        return SliceReader(self.options)


class SliceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in a process of its own; reads them in the executors' workers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._node = options["node"]
        self._state = Path(options["state"])
        self._partitions = int(options.get("partitions", "2"))
        self._rows_max = int(options.get("rows_per_batch", "400000"))
        self._evidence = options.get("evidence")
        self._planner: _Planner | None = None
        self._final: dict[int, int] | None = None

    @property
    def planner(self) -> "_Planner":
        if self._planner is None:
            self._planner = _Planner(self._state, self._node)
        return self._planner

    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end: what arrives later belongs to a later run."""
        self._final = self.planner.ends(range(self.planner.log_address.slices))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The ends of the slices as last asked for: what the query's progress shows as its lag."""
        ends = self.planner.last_ends
        return {str(slice_): [0, 0, end] for slice_, end in sorted(ends.items())} if ends else None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        with evidence.left_in(self._evidence):
            return self._latest_offset(start, limit)

    def _latest_offset(self, start: Offset, limit: ReadLimit) -> Offset:
        held = self.planner.held_slices(start)
        ends = self.planner.ends(held)
        for slice_, at in held.items():
            if ends[slice_] < at[2]:
                raise SequenceGapError(
                    f"Slice {slice_} ends at {ends[slice_]}, but the tables have it up to {at[2]}: the log has lost "
                    "messages or belongs to other tables; put the right data back, or start in another directory.",
                    where=f"slice {slice_}",
                    expected=at[2],
                    found=ends[slice_],
                )
        if self._final is not None:
            ends = {slice_: min(end, self._final[slice_]) for slice_, end in ends.items()}
        rows_max = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self._rows_max)
        reach = share_rows({slice_: (at[2], ends[slice_]) for slice_, at in held.items()}, rows_max)
        return {str(slice_): [at[0], at[1], reach[slice_]] for slice_, at in sorted(held.items())}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        wanted = []
        for name, (epoch, begin, to) in end.items():
            before = start.get(name)
            after = before[2] if before and before[0] == epoch else begin
            if to > after:
                wanted.append((int(name), epoch, after, to))
        return [SliceRanges(self.planner.log_address, group) for group in group_ranges(wanted, self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, SliceRanges)
        epochs = {slice_: epoch for slice_, epoch, _, _ in partition.ranges}
        wanted = [SliceRange(slice_, after, to) for slice_, _, after, to in partition.ranges]
        # Closed at once, whatever ends the loop: an answer under way must not be taken for one of the next read's.
        with evidence.left_in(self._evidence), closing(_worker_log(partition.log).read(wanted)) as read:
            for rows in read:
                yield record_batch(rows, epochs[rows.slice])

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()


class _Planner:
    """The planner's connections, and the slices it may read."""

    def __init__(self, state: Path, node: str) -> None:
        installation = load_installation(state)
        self.log_address = address_of_log(installation)
        self._node = node
        self._log = open_log(self.log_address, name=f"{node}-planner")
        self._bus = Bus(installation.control_urls, name=f"{node}-planner")
        self._assignments = Assignments(self._bus, installation.slices)
        self._tables = Tables(Path(installation.tables))
        self._renewed = False
        self.last_ends: dict[int, int] = {}

    def close(self) -> None:
        self._log.close()
        self._bus.close()

    def held_slices(self, start: Offset) -> dict[int, list[int]]:
        """Let go of slices that have a taker, claim slices that are new here; what is held, as [epoch, from, to].

        Without the control bus, or where it cannot say who owns what, the node goes on with what it holds: the table
        would refuse it if that were wrong.
        """
        held = {int(name): at for name, at in start.items()}
        try:
            owned = self._settle()
        except (BrokerUnavailableError, DamagedDocumentError):
            return held
        kept = {s: at for s, at in held.items() if owned.get(s) == at[0]}
        wanted = {s: epoch for s, epoch in owned.items() if s not in kept}
        if wanted:
            claimed = self._tables.claim(wanted)
            kept.update({s: [wanted[s], offset, offset] for s, offset in claimed.items()})
        return kept

    def _settle(self) -> dict[int, int]:
        """This node's slices and their epochs, after giving away what has a taker."""
        if not self._renewed:
            # Whatever an earlier query of this node left behind is shut out by a higher epoch.
            assignment = self._assignments.change(lambda before: before.renew(self._node))
            self._renewed = True
        else:
            assignment = self._assignments.current()
        if any(hold.taker for hold in assignment.owned_by(self._node).values()):
            alive = self._assignments.alive()
            assignment = self._assignments.change(lambda before: before.release(self._node, alive))
        assignment = self._await_promised(assignment)
        return {slice_: hold.epoch for slice_, hold in assignment.owned_by(self._node).items()}

    def _await_promised(self, assignment: Assignment) -> Assignment:
        """A slice that is on its way here comes between two batches of its giver, within half a batch as a rule.

        Waiting for it a little costs the other slices less than a whole batch later would cost this one.
        """
        deadline_s = time.monotonic() + PROMISED_S_MAX
        while assignment.promised_to(self._node) and time.monotonic() < deadline_s:
            time.sleep(PROMISED_POLL_S)
            assignment = self._assignments.current()
        return assignment

    def ends(self, slices: Iterable[int]) -> dict[int, int]:
        self.last_ends = self._log.ends(list(slices))
        return self.last_ends


def share_rows(spans: Mapping[int, tuple[int, int]], rows_max: int | None) -> dict[int, int]:
    """How far each slice may go so that all together stay within the limit: an equal share, and what others leave."""
    reach = {slice_: max(after, end) for slice_, (after, end) in spans.items()}
    if rows_max is None or sum(reach[s] - after for s, (after, _) in spans.items()) <= rows_max:
        return reach
    left = rows_max
    by_need = sorted(spans, key=lambda s: reach[s] - spans[s][0])
    for index, slice_ in enumerate(by_need):
        after = spans[slice_][0]
        taken = min(reach[slice_] - after, left // (len(by_need) - index))
        reach[slice_] = after + taken
        left -= taken
    return reach


def group_ranges(ranges: list[tuple[int, int, int, int]], groups: int) -> list[list[tuple[int, int, int, int]]]:
    """About one partition per core, one for all where there is little to do: slices spread by their numbers of rows."""
    rows = sum(to - after for _, _, after, to in ranges)
    useful = max(1, min(groups, len(ranges), rows // PARTITION_ROWS_MIN))
    filled: list[list[tuple[int, int, int, int]]] = [[] for _ in range(useful if ranges else 0)]
    burden = [0] * len(filled)
    for wanted in sorted(ranges, key=lambda r: r[2] - r[3]):
        lightest = burden.index(min(burden))
        filled[lightest].append(wanted)
        burden[lightest] += wanted[3] - wanted[2]
    return filled


_logs: dict[LogAddress, SlicedLog] = {}


def _worker_log(address: LogAddress) -> SlicedLog:
    """A worker process serves many batches: its connection stays open between them."""
    if address not in _logs:
        _logs[address] = open_log(address, name="tidegate-worker")
    return _logs[address]


def record_batch(rows: Rows, epoch: int) -> pa.RecordBatch:
    count = len(rows.payloads)
    columns = [
        pa.repeat(pa.scalar(rows.slice, pa.int32()), count),
        pa.repeat(pa.scalar(epoch, pa.int32()), count),
        pa.array(np.arange(rows.first, rows.first + count, dtype=np.int64)),
        rows.topics,
        pc.divide(rows.stamps_ns, 1000).cast(_STAMP),
        rows.payloads,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
