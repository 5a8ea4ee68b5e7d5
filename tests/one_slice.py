"""A slice's way into real tables without Spark: a sink that gets one batch after the other, and may start anew."""

import pickle
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskResult, TaskSettings, write_files

Identity = tuple[str, int, int]
DAY_S = 86_400.0


class OneSlice:
    def __init__(self, directory: Path, arrived_s: float, snapshot_s: float = 3600.0) -> None:
        self.settings = TaskSettings(directory, 60, 0.0, False, horizon_days=30)
        self.arrived_s = arrived_s
        self.alarms: list[str | None] = []
        self.damage: list[str | None] = []
        self._snapshot_s = snapshot_s
        self._epoch = 0
        self.start()

    def start(self) -> None:
        self._epoch += 1
        self.tables = Tables(self.settings.tables)
        self.offset = self.tables.claim({0: self._epoch})[0]
        self.sink = Sink(
            self.tables, self.settings, self._snapshot_s, alarm=self.alarms.append, damaged=self.damage.append
        )

    def task(self, identities: list[Identity]) -> TaskResult:
        count = len(identities)
        columns = [
            pa.array([0] * count, pa.int32()),
            pa.array([self._epoch] * count, pa.int32()),
            pa.array(range(self.offset + 1, self.offset + count + 1), pa.int64()),
            pa.array([self.offset] * count, pa.int64()),
            pa.array([f"telemetry/{device}" for device, _, _ in identities], pa.string()),
            pa.array([round(self.arrived_s * 1e6)] * count, pa.timestamp("us", tz="UTC")),
            pa.array([b'{"boot":%d,"seq":%d,"value":1.5}' % (boot, seq) for _, boot, seq in identities], pa.binary()),
        ]
        names = ["slice", "epoch", "offset", "after", "topic", "arrived", "payload"]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        (written,) = write_files(self.settings, iter([batch]))
        result: TaskResult = pickle.loads(written.column("result")[0].as_py())
        return result

    def write(self, identities: list[Identity]) -> None:
        result = self.task(identities)
        if not self._snapshot_s:
            self.sink._snapshot_due = dict.fromkeys(self.sink._snapshot_due, 0.0)  # however long the last one took
        self.sink.commit_results([result])
        self.sink.settle()
        self.offset += len(identities)

    def stored(self) -> list[Identity]:
        rows = DeltaTable(str(self.settings.tables / "readings")).to_pyarrow_table()
        return sorted(zip(*(rows[name].to_pylist() for name in ("device", "boot", "seq")), strict=True))

    def files(self) -> list[Path]:
        """The active files of the readings, in the order of their offsets."""
        found = pa.table(DeltaTable(str(self.settings.tables / "readings")).get_add_actions(flatten=True))
        paths = found.sort_by("min.offset")["path"].to_pylist()
        return [self.settings.tables / "readings" / path for path in paths]
