"""How long Spark takes over a batch of nothing on this machine: what every delay is measured against.

In a process of its own, because a Spark session cannot be ended without a trace.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.model.errors import TidegateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAIT_S = 0.5
EMPTY_SECONDS = 15.0


def median_s(tell: Callable[[], None]) -> float:
    """The median duration of empty batches; ``tell`` is called while it takes."""
    command = [sys.executable, "-m", "tidegate.pipeline.empty_batches"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0) as process:
        try:
            while process.poll() is None:
                tell()
                try:
                    process.wait(WAIT_S)
                except subprocess.TimeoutExpired:
                    continue
            assert process.stdout is not None
            durations: list[float] = json.loads(process.stdout.read() or b"[]")
        finally:
            process.kill()
    if not durations:
        raise TidegateError("Spark did not run a single empty batch: try again on a quieter machine.")
    return statistics.median(durations)


def empty_batches_s(spark: "SparkSession") -> list[float]:
    """Durations of micro-batches that carry nothing through the same stages, the first ones left out."""
    from tidegate.pipeline.sources.ticks import Ticks  # noqa: PLC0415 - Spark is slow to import

    spark.dataSource.register(Ticks)
    durations: list[float] = []

    def collect(batch: "DataFrame", _: int) -> None:
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


def main() -> None:
    from tidegate.pipeline.spark import prepare, session  # noqa: PLC0415 - Spark is slow to import

    prepare(lambda _: None)
    with tempfile.TemporaryDirectory(prefix="tidegate-") as directory:
        spark = session("tidegate-empty", "local[2]", heap_mib=512, log=Path(directory) / "spark.log")
        try:
            durations = empty_batches_s(spark)
        finally:
            spark.stop()
    sys.stdout.write(json.dumps(durations) + "\n")


if __name__ == "__main__":
    main()
