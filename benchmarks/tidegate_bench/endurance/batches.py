"""Batches as Spark would deliver them, without Spark: made-up readings through the product's own tasks and sink."""

import pickle
import time
from collections.abc import Mapping, Sequence
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

    def task(self, devices: Mapping[int, list[str]], sequence: int) -> list[TaskResult]:
        """One reading of each device, all slices in one task."""
        batches = [self._batch(slice_, names, sequence) for slice_, names in devices.items()]
        written = write_files(self.settings, iter(batches))
        return [pickle.loads(part.column("result")[0].as_py()) for part in written]  # noqa: S301 - written above

    def _batch(self, slice_: int, devices: list[str], sequence: int) -> pa.RecordBatch:
        after, count = self.offsets[slice_], len(devices)
        self.offsets[slice_] += count
        now_us = time.time_ns() // 1000
        payload = b'{"boot":1,"seq":%d,"time":%d.5,"value":%d.25}' % (sequence, now_us // 10**6, sequence % 50)
        columns = {
            "slice": pa.array(np.full(count, slice_, np.int32)),
            "epoch": pa.array(np.full(count, self.epoch, np.int32)),
            "offset": pa.array(np.arange(after + 1, after + count + 1)),
            "after": pa.array(np.full(count, after)),
            "topic": pa.array([f"telemetry/{device}" for device in devices]),
            "arrived": pa.array(np.full(count, now_us)).cast(pa.timestamp("us", tz="UTC")),
            "payload": pa.array([payload] * count, pa.binary()),
        }
        return pa.RecordBatch.from_pydict(columns)

    def commit(self, results: list[TaskResult]) -> float:
        """How long the driver's half took."""
        started_s = time.perf_counter()
        self.sink.commit_results(results)
        self.sink.settle()
        return time.perf_counter() - started_s


def names(count: int, first: int = 0, slices: Sequence[int] = range(SLICES)) -> dict[int, list[str]]:
    """So many devices of each slice."""
    return {s: [f"device-{s}-{number:06d}" for number in range(first, first + count)] for s in slices}
