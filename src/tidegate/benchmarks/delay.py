"""How old a reading is when the table has it, and how long Spark takes over a batch of nothing."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidegate.pipeline.ages import committed

EMPTY_SECONDS = 15.0


def delays_s(table: Path, skip_s: float) -> list[float]:
    """For each stored reading, the time of its commit less the time it was sent; without the first ``skip_s``."""
    rows = committed(table)
    committed_s, taken_s = (rows[name].to_numpy() for name in ("committed_s", "taken_s"))
    late = committed_s - committed_s.min(initial=float("inf")) >= skip_s
    return [float(delay) for delay in (committed_s - taken_s)[late]]


class Ticks(DataSource):
    """A source that always has a new offset and never a row, with one partition per core."""

    @classmethod
    def name(cls) -> str:
        return "tidegate-ticks"

    def schema(self) -> str:
        return "slice int, epoch int, offset bigint, topic string, arrived timestamp, payload binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _TickReader()


class _TickReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"tick": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"tick": start["tick"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:  # noqa: ARG002
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return iter(())


def empty_batches_s(spark: SparkSession) -> list[float]:
    """Durations of micro-batches that carry nothing through the same stages, the first ones left out."""
    spark.dataSource.register(Ticks)
    durations: list[float] = []

    def collect(batch: DataFrame, _: int) -> None:
        batch.collect()

    with tempfile.TemporaryDirectory(prefix="tidegate-", dir="/dev/shm") as scratch:
        frame = spark.readStream.format("tidegate-ticks").load()
        frame = frame.mapInArrow(lambda rows: rows, frame.schema)
        query = frame.writeStream.foreachBatch(collect).option("checkpointLocation", scratch).start()
        seen = -1
        deadline = time.monotonic() + EMPTY_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.5)
            for progress in query.recentProgress:
                if progress["batchId"] > max(seen, 9):
                    durations.append(progress["durationMs"]["triggerExecution"] / 1000)
                seen = max(seen, progress["batchId"])
        query.stop()
    return durations
