"""An installation as far as the check of acknowledgements looks at it: real tables, a journal and a log."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from tidegate.brokers.nats.attribution import slice_of
from tidegate.brokers.port import Rows, SliceRange, Span
from tidegate.bus.journals import Ends, Record
from tidegate.model.backlog import Backlog, SliceBacklog
from tidegate.model.errors import BrokerUnavailableError, SequenceGapError
from tidegate.model.ledger import CompletenessState, LedgerReport, SequenceRun
from tidegate.pipeline.completeness.book import CONFIRM_S
from tidegate.pipeline.completeness.rounds import Round, Sources
from tidegate.pipeline.completeness.stored import StoredReadings
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date
from tidegate.pipeline.transforms.parsing import parse

SLICES = 2
START_S = 1_800_000_000.0
STAMP = pa.timestamp("us", tz="UTC")


class Log:
    """Messages in slices, and what has not reached its slice."""

    def __init__(self) -> None:
        self.messages: dict[int, list[tuple[str, bytes]]] = {number: [] for number in range(SLICES)}
        self.first = dict.fromkeys(range(SLICES), 1)
        self.upstream = 0
        self.alarms: tuple[str, ...] = ()
        self.has_gap = False

    def slice_of(self, device: str) -> int:
        return slice_of(device, SLICES)

    def backlog(self, committed: Mapping[int, int]) -> Backlog:
        slices = tuple(
            SliceBacklog(
                slice=number,
                last_sequence=len(messages),
                committed=committed.get(number, 0),
                head_time_s=None,
                head_age_s=0,
            )
            for number, messages in self.messages.items()
        )
        return Backlog(slices=slices, upstream_waiting=self.upstream, measured_at_s=0, alarms=self.alarms)

    def spans(self, slices: Sequence[int]) -> dict[int, Span]:
        return {number: Span(self.first[number], len(self.messages[number])) for number in slices}

    def read(self, wanted: Sequence[SliceRange]) -> Generator[Rows, None, None]:
        for slice_, after, last in wanted:
            if self.has_gap:
                raise SequenceGapError("a gap")
            found = self.messages[slice_][after:last]
            yield Rows(
                slice_,
                after + 1,
                pa.array([topic for topic, _ in found]),
                pa.array([round(START_S * 1e9)] * len(found)),
                pa.array([payload for _, payload in found], pa.binary()),
            )

    def purge(self, committed: Mapping[int, int]) -> dict[int, int]:
        raise AssertionError("The check only reads: it must not purge.")

    def close(self) -> None:
        pass


class Journal:
    def __init__(self) -> None:
        self.exists = False
        self.created = "first"
        self.records: dict[int, Record[LedgerReport]] = {}
        self.last = 0
        self.now_s = START_S
        self.away = False

    def create(self) -> None:
        self.exists = True

    def ends(self) -> Ends:
        if self.away:
            raise BrokerUnavailableError("The bus is away.")
        if not self.exists:
            return Ends(1, 0)
        return Ends(min(self.records, default=self.last + 1), self.last, self.created, self.now_s)

    def read(self, sequences: Sequence[int]) -> list[Record[LedgerReport]]:
        return [self.records[number] for number in sequences if number in self.records]

    def append(self, report: LedgerReport | None) -> None:
        self.exists = True
        self.last += 1
        self.records[self.last] = Record(self.last, self.now_s, report)


class Stand:
    """An installation as far as the check looks at it. Publishing is acknowledged; what is lost is never in the log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tables = Tables(directory)
        self.tables.claim(dict.fromkeys(range(SLICES), 1))
        self.settings = TaskSettings(directory, 60, 0.0, False)
        self.log, self.journal = Log(), Journal()
        self.now_s = START_S
        self.committed = dict.fromkeys(range(SLICES), 0)
        self.restart()

    def restart(self) -> None:
        readings = StoredReadings(Tables(self.directory), SLICES, horizon_days=30)
        self.round = Round(Sources(self.journal, self.log, readings, self.directory), self.now_s)

    def publish(self, device: str, *sequences: int, boot: int = 1, payload: bytes = b"") -> None:
        for seq in sequences:
            said = payload or b'{"boot":%d,"seq":%d,"value":1}' % (boot, seq)
            self.log.messages[self.log.slice_of(device)].append((f"telemetry/{device}", said))

    def report(self, device: str, *runs: SequenceRun, gateway: str = "g-1", **counts: int) -> None:
        devices = ((device, runs),) if runs else ()
        self.journal.append(
            LedgerReport(gateway=gateway, process=1, oldest_s=10.0, newest_s=0.0, devices=devices, **counts)
        )

    def commit(self) -> None:
        """What a node does with all that is in the log."""
        for slice_, messages in self.log.messages.items():
            after, to = self.committed[slice_], len(messages)
            if to == after:
                continue
            step = {slice_: Step(1, after, to)}
            parsed = parse(batch(slice_, after, messages[after:]))
            for table, rows in ((self.tables.rejected, parsed.rejected), (self.tables.readings, parsed.readings)):
                adds = write_by_date(self.settings, table.name, pa.Table.from_batches([rows])) if rows.num_rows else []
                table.commit(adds, step)
            self.committed[slice_] = to

    def step(self, steps: int = 1) -> CompletenessState:
        for _ in range(steps):
            self.now_s += CONFIRM_S
            self.journal.now_s += CONFIRM_S
            self.round.step(self.now_s)
        return self.round.said("checker", self.now_s)


def batch(slice_: int, after: int, messages: list[tuple[str, bytes]]) -> pa.RecordBatch:
    count = len(messages)
    columns = {
        "slice": pa.array([slice_] * count, pa.int32()),
        "offset": pa.array(range(after + 1, after + count + 1), pa.int64()),
        "topic": pa.array([topic for topic, _ in messages]),
        "arrived": pa.array([round(START_S * 1e6)] * count, STAMP),
        "payload": pa.array([payload for _, payload in messages], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def sums(state: CompletenessState) -> tuple[int, int, int, int, int]:
    """Acknowledged, stored, rejected, missing, waiting."""
    return tuple(
        sum(getattr(hour, name) for hour in state.hours)
        for name in ("acknowledged", "stored", "rejected", "missing", "waiting")
    )  # type: ignore[return-value]


def named(state: CompletenessState) -> list[tuple[str, int, int, int]]:
    return [(hole.device, hole.boot, hole.low, hole.high) for hole in state.holes]
