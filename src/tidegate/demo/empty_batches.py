"""How long Spark takes over a batch of nothing on this machine: what every delay is measured against.

In a process of its own, because a Spark session cannot be ended without a trace.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tidegate.model.errors import TidegateError

WAIT_S = 0.5


def median_s(tell: Callable[[], None]) -> float:
    """The median duration of empty batches; ``tell`` is called while it takes."""
    command = [sys.executable, "-m", "tidegate.demo.empty_batches"]
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


def main() -> None:
    from tidegate.benchmarks.delay import empty_batches_s  # noqa: PLC0415 - Spark is slow to import
    from tidegate.pipeline.spark import prepare, session  # noqa: PLC0415

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
