"""Queries whose batches are timed: JetStream or parquet in, nothing or Delta tables out."""

import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate.bus.documents import NODE_LEASES
from tidegate.bus.installation import save_installation
from tidegate.bus.leases import Lease
from tidegate.pipeline.sources.slices import COLUMNS
from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskSettings
from tidegate_bench.rig.installation import Rig

NODE = "bench"
ROWS_PER_BATCH = 400_000


class Workbench:
    """Each run reads everything from the beginning, into tables of its own."""

    def __init__(self, spark: SparkSession, rig: Rig) -> None:
        self._spark = spark
        self._rig = rig
        self._numbers = itertools.count()
        Lease(rig.bus, NODE_LEASES, NODE, 3600).keep()
        rig.assignments.change(lambda before: before.adopt([NODE])[0])

    def _fresh(self) -> Path:
        """A state directory whose tables are empty, on the same brokers."""
        state = self._rig.state / f"run-{next(self._numbers)}"
        state.mkdir()
        save_installation(msgspec.structs.replace(self._rig.installation, tables=str(state / "tables")), state)
        return state

    def jetstream_to_noop(self) -> float:
        state = self._fresh()
        try:
            return _seconds(self._jetstream(state).writeStream.format("noop"))
        finally:
            shutil.rmtree(state)

    def jetstream_to_delta(self) -> float:
        state = self._fresh()
        try:
            return self._to_delta(self._jetstream(state), Tables(state / "tables"))
        finally:
            shutil.rmtree(state)

    def parquet_to_delta(self, directory: Path) -> float:
        state = self._fresh()
        tables = Tables(state / "tables")
        tables.claim(dict.fromkeys(range(self._rig.installation.slices), 1))
        try:
            return self._to_delta(self._spark.readStream.schema(COLUMNS).parquet(str(directory)), tables)
        finally:
            shutil.rmtree(state)

    def _jetstream(self, state: Path) -> DataFrame:
        source = self._spark.readStream.format("tidegate").option("state", str(state)).option("node", NODE)
        return source.option("rows_per_batch", str(ROWS_PER_BATCH)).load()

    @staticmethod
    def _to_delta(frame: DataFrame, tables: Tables) -> float:
        sink = Sink(tables, TaskSettings(tables.directory, 60, 0.0, False), 3600.0)

        def commit(batch: DataFrame, _: int) -> None:
            sink.commit(batch)

        try:
            return _seconds(sink.written(frame).writeStream.foreachBatch(commit))
        finally:
            sink.close()


def _seconds(writer: DataStreamWriter) -> float:
    """How long the batches of a query took, from what Spark itself reports."""
    with tempfile.TemporaryDirectory(prefix="tidegate-") as scratch:
        query = writer.option("checkpointLocation", scratch).trigger(availableNow=True).start()
        query.awaitTermination()
        progress: list[Any] = query.recentProgress
    return float(sum(one["durationMs"]["triggerExecution"] for one in progress)) / 1000
