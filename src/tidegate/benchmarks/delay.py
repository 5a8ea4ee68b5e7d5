"""How old a reading is when the table has it, and how long Spark takes over a batch of nothing."""

import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidegate.pipeline.ages import committed
from tidegate.pipeline.sources.ticks import Ticks

EMPTY_SECONDS = 15.0


def delays_s(table: Path, skip_s: float) -> list[float]:
    """For each stored reading, the time of its commit less the time it was sent; without the first ``skip_s``."""
    rows = committed(table)
    committed_s, taken_s = (rows[name].to_numpy() for name in ("committed_s", "taken_s"))
    late = committed_s - committed_s.min(initial=float("inf")) >= skip_s
    return [float(delay) for delay in (committed_s - taken_s)[late]]


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
