"""Batches as Spark would deliver them, without Spark: made-up readings through the product's own tasks and sink."""

import pickle
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskResult, TaskSettings, write_files

SLICES = 8
WINDOW_S = 60


def settings_for(directory: Path) -> TaskSettings:
    return TaskSettings(directory, WINDOW_S, 0.0, False)


class Driver:
    """A node's driver over all slices, and the logs it reads: every slice holds what is asked of it, densely."""

    def __init__(self, directory: Path, epoch: int, slices: Sequence[int] = range(SLICES)) -> None:
        self.settings = settings_for(directory)
        self.epoch = epoch
        tables = Tables(directory)
        self.offsets = tables.claim(dict.fromkeys(slices, epoch))
        self.sink = Sink(tables, self.settings, 2.0)

    def close(self) -> None:
        self.sink.settle()
        self.sink.close()

    def task(self, slice_: int, devices: list[str], sequences: list[int]) -> TaskResult:
        """One reading of each device."""
        after, count = self.offsets[slice_], len(devices)
        self.offsets[slice_] += count
        now_us = time.time_ns() // 1000
        payload = [b'{"boot":1,"seq":%d,"time":%d.5,"value":%d.25}' % (s, now_us // 10**6, s % 50) for s in sequences]
        columns = {
            "slice": pa.array(np.full(count, slice_, np.int32)),
            "epoch": pa.array(np.full(count, self.epoch, np.int32)),
            "offset": pa.array(np.arange(after + 1, after + count + 1)),
            "after": pa.array(np.full(count, after)),
            "topic": pa.array([f"telemetry/{device}" for device in devices]),
            "arrived": pa.array(np.full(count, now_us)).cast(pa.timestamp("us", tz="UTC")),
            "payload": pa.array(payload, pa.binary()),
        }
        (written,) = write_files(self.settings, iter([pa.RecordBatch.from_pydict(columns)]))
        result: TaskResult = pickle.loads(written.column("result")[0].as_py())  # noqa: S301 - written above
        return result

    def commit(self, results: list[TaskResult]) -> float:
        """How long the driver's half took."""
        started_s = time.perf_counter()
        self.sink.commit_results(results)
        self.sink.settle()
        return time.perf_counter() - started_s
