"""A sink without Spark around it, for tests: log rows in, tables out, and it can die in between."""

import pickle
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskResult, TaskSettings, write_files

WINDOW_S = 10
DAY_S = 86_400
NOW_S = 1_760_000_000


class Bench:
    """Tables in a directory, and a sink that can die and come back."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = TaskSettings(directory, WINDOW_S, 0.0, False)
        self.arrived_s = 1_000_000.0
        self.alarms: list[str | None] = []
        self.sink = self.restart(1)

    def restart(self, epoch: int, slices: int = 2) -> Sink:
        self.epoch = epoch
        tables = Tables(self.directory)
        self.offsets = tables.claim(dict.fromkeys(range(slices), epoch))
        self.sink = Sink(tables, self.settings, 3600.0, alarm=self.alarms.append)
        return self.sink

    def task(self, slice_: int, after: int, payloads: list[bytes]) -> TaskResult:
        return self.task_of(self.batch(slice_, after, payloads))

    def task_of(self, *batches: pa.RecordBatch) -> TaskResult:
        (written,) = write_files(self.settings, iter(batches))
        result: TaskResult = pickle.loads(written.column("result")[0].as_py())
        return result

    def batch(self, slice_: int, after: int, payloads: list[bytes]) -> pa.RecordBatch:
        count = len(payloads)
        columns = [
            pa.array([slice_] * count, pa.int32()),
            pa.array([self.epoch] * count, pa.int32()),
            pa.array(range(after + 1, after + count + 1), pa.int64()),
            pa.array([after] * count, pa.int64()),
            pa.array([f"telemetry/device-{slice_}"] * count, pa.string()),
            pa.array([round(self.arrived_s * 1e6)] * count, pa.timestamp("us", tz="UTC")),
            pa.array(payloads, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(
            columns, names=["slice", "epoch", "offset", "after", "topic", "arrived", "payload"]
        )

    def write(self, slice_: int, after: int, payloads: list[bytes]) -> None:
        result = self.task(slice_, after, payloads)
        self.sink.commit_results([result])
        self.sink.settle()
        self.repeats = result.repeats

    def table(self, name: str) -> pa.Table:
        return DeltaTable(str(self.directory / name)).to_pyarrow_table()

    def sequences(self) -> list[int]:
        return sorted(self.table("readings")["seq"].to_pylist())


def reading(seq: int, boot: int = 1) -> bytes:
    return b'{"boot":%d,"seq":%d,"time":%d,"value":%d.5}' % (boot, seq, seq, seq)
