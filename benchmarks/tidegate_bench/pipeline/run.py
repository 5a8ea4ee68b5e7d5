"""``tidegate bench pipeline``: the Spark source against nats-py and against parquet, its growth, and its delay.

All ratios are of figures taken in this run, the peers interleaved. Throughput is rows over the time Spark spends in
batches, so starting a query does not count for or against anybody.
"""

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from pyspark.sql import SparkSession

from tidegate.brokers.settings import DISK_BYTES_MIN, BrokerSettings
from tidegate.model.installation import Installation
from tidegate.pipeline.ages import Ages, delays_s
from tidegate.pipeline.empty_batches import empty_batches_s
from tidegate.pipeline.sources.slices import SliceSource
from tidegate.pipeline.spark import prepare, session
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.pipeline.filling import ROW_BYTES, fill, write_parquet
from tidegate_bench.pipeline.throughput import Workbench
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.installation import Rig

SLICES = 8
PEER_ROWS = 400_000
SMALL_ROWS = 1_000_000
LARGE_ROWS = 10_000_000
REPETITIONS = 5
LARGE_REPETITIONS = 2
# Of each repetition: these two are close, so they are compared more often than the others.
PARQUET_PAIRS = 2
NATSPY_FLOOR = 15_000.0
DELAY_RATE = 1_000
DELAY_SECONDS = 30


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    progress.step("Preparing Spark.")
    prepare()
    spark = session("tidegate-bench", "local[2]", heap_mib=2048)
    spark.dataSource.register(SliceSource)
    rows: list[dict[str, Any]] = []
    try:
        _throughput(spark, progress, rows, out)
        _delay(spark, progress, rows, out)
    finally:
        spark.stop()
    return Report("bench pipeline", rows, _checks(rows), round(time.monotonic() - started_s, 1))


def _median(rows: list[dict[str, Any]], what: str, key: str = "rows_per_s") -> float:
    return float(statistics.median(row[key] for row in rows if row["what"] == what))


def _checks(rows: list[dict[str, Any]]) -> list[Check]:
    natspy = _median(rows, "nats-py")
    growth = _median(rows, "delta large", "us_per_row") / _median(rows, "delta small", "us_per_row")
    delay = _median(rows, "delay", "p50_s") / _median(rows, "empty batch", "p50_s")
    return [
        Check.at_least("natspy_rows_per_s", round(natspy), NATSPY_FLOOR),
        Check.at_least("jetstream_vs_natspy", round(_median(rows, "jetstream") / natspy, 2), 8),
        Check.at_least("jetstream_vs_parquet", round(_median(rows, "delta peer") / _median(rows, "parquet"), 3), 0.6),
        Check.at_most("cost_per_row_growth", round(growth, 3), 1.15),
        Check.at_most("delay_vs_empty_batch", round(delay, 2), 2.5),
    ]


def _throughput(spark: SparkSession, progress: Progress, rows: list[dict[str, Any]], out: Path | None) -> None:
    with _log(out, "small", SMALL_ROWS) as small, _log(out, "large", LARGE_ROWS) as large:
        bench = Workbench(spark, small)
        progress.step(f"Filling the log with {PEER_ROWS:,} rows.")
        fill(small.installation, 0, PEER_ROWS, progress)
        parquet = write_parquet(small.installation, small.state / "parquet", PEER_ROWS)
        bench.jetstream_to_delta()  # the first run of each kind pays for compiling and importing
        bench.parquet_to_delta(parquet)
        for repetition in range(REPETITIONS):
            progress.step(f"Comparing with nats-py and parquet, {repetition + 1} of {REPETITIONS}.")
            rows.append(_row("nats-py", PEER_ROWS, _natspy_s(small.installation)))
            rows.append(_row("jetstream", PEER_ROWS, bench.jetstream_to_noop()))
            for _ in range(PARQUET_PAIRS):
                rows.append(_row("delta peer", PEER_ROWS, bench.jetstream_to_delta()))
                rows.append(_row("parquet", PEER_ROWS, bench.parquet_to_delta(parquet)))
        progress.step(f"Filling the logs up to {SMALL_ROWS:,} and {LARGE_ROWS:,} rows.")
        fill(small.installation, PEER_ROWS, SMALL_ROWS, progress)
        fill(large.installation, 0, LARGE_ROWS, progress)
        _growth(bench, Workbench(spark, large), progress, rows)


def _log(out: Path | None, name: str, rows: int) -> Rig:
    settings = BrokerSettings(nodes=1, slices=SLICES, disk_bytes_max=max(rows * ROW_BYTES * 8, DISK_BYTES_MIN))
    return Rig(settings, None if out is None else out / name)


def _growth(small: Workbench, large: Workbench, progress: Progress, rows: list[dict[str, Any]]) -> None:
    """Small drains before, between and after the large ones: a machine that gets slower meanwhile slows both."""
    for repetition in range(LARGE_REPETITIONS + 1):
        progress.step(f"Draining {SMALL_ROWS:,} rows, three times.")
        rows.extend(_row("delta small", SMALL_ROWS, small.jetstream_to_delta()) for _ in range(3))
        if repetition < LARGE_REPETITIONS:
            progress.step(f"Draining {LARGE_ROWS:,} rows, {repetition + 1} of {LARGE_REPETITIONS}.")
            rows.append(_row("delta large", LARGE_ROWS, large.jetstream_to_delta()))


def _row(what: str, count: int, seconds: float) -> dict[str, Any]:
    return {
        "what": what,
        "rows": count,
        "seconds": round(seconds, 3),
        "rows_per_s": round(count / seconds),
        "us_per_row": round(seconds / count * 1e6, 3),
    }


def _natspy_s(installation: Installation) -> float:
    """The same rows through nats-py: a pull consumer per slice, fetch(1000), no acknowledgements."""

    async def read() -> float:
        client = await nats.connect(list(installation.data_urls))
        stream = client.jetstream()
        started_s = time.monotonic()
        for slice_ in range(installation.slices):
            config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.ALL, mem_storage=True)
            consumer = await stream.pull_subscribe("", stream=f"SLICE_{slice_}", config=config)
            left = PEER_ROWS // installation.slices
            while left > 0:
                left -= len(await consumer.fetch(min(1000, left), timeout=5))
        seconds = time.monotonic() - started_s
        await client.close()
        return seconds

    return asyncio.run(read())


def _delay(spark: SparkSession, progress: Progress, rows: list[dict[str, Any]], out: Path | None) -> None:
    directory = None if out is None else out / "delay"
    with Rig(BrokerSettings(nodes=1, slices=SLICES), directory) as rig:
        progress.step("Measuring empty batches.")
        rows.append({"what": "empty batch", **_spread(empty_batches_s(spark))})
        progress.step("Starting a node for the delay.")
        node = rig.start_node("delay", trigger_ms="0")
        rig.wait("the node", lambda: rig.has_progress("delay"))
        progress.step(f"{DELAY_RATE:,} readings a second for {DELAY_SECONDS} s.")
        load = rig.start_load("delay", devices=200, connections=8, rate=DELAY_RATE, seconds=DELAY_SECONDS, seed=1)
        ages = Ages(Path(rig.installation.tables) / "readings")
        with asked_regularly(ages.follow):
            summary = load.last_answer()
            rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 60)
        node.stop()
        delays = delays_s(ages.rows(), skip_s=DELAY_SECONDS / 3)
        rows.append({"what": "delay", **_spread(delays), "fleet": summary})
        progress.step("Measuring empty batches again.")
        rows.append({"what": "empty batch", **_spread(empty_batches_s(spark))})


def _spread(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)

    return {"count": len(ordered), "p5_s": at(0.05), "p50_s": at(0.5), "p95_s": at(0.95)}
