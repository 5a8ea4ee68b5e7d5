"""``tidegate bench pipeline``: the Spark source against nats-py and against parquet, its growth, and its delay.

All ratios are of figures taken in this run. Peers run in pairs, one right after the other and first in turn; a check is
the median of the pairs' ratios, and the rows say how far these are apart. Throughput is rows over the time Spark spends
in batches, so starting a query does not count for or against anybody.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
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
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.pipeline.checks import (
    DELAY,
    DELTA,
    EMPTY,
    JETSTREAM,
    LARGE,
    NATSPY,
    PAIRS,
    PARQUET,
    SMALL,
    checks,
    spreads,
)
from tidegate_bench.pipeline.filling import ROW_BYTES, fill, write_parquet
from tidegate_bench.pipeline.throughput import Workbench
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.installation import Rig

SLICES = 8
PEER_ROWS = 400_000
# nats-py takes many times as long for a row; its rate shows with fewer.
NATSPY_ROWS = 100_000
SMALL_ROWS = 1_000_000
LARGE_ROWS = 10_000_000
ROUNDS = 12
LARGE_REPETITIONS = 2
DELAY_RATE = 1_000
DELAY_SECONDS = 30


Way = tuple[int, Callable[[], float]]  # rows, and what reads them and says how long that took


def run(progress: Progress, out: Path | None, *, rounds: int = ROUNDS) -> Report:
    """``rounds`` is how many pairs of each kind are measured."""
    started_s = time.monotonic()
    progress.step("Preparing Spark.")
    prepare()
    spark = session("tidegate-bench", "local[2]", heap_mib=2048)
    spark.dataSource.register(SliceSource)
    rows: list[dict[str, Any]] = []
    try:
        _throughput(spark, progress, rows, out, rounds)
        _delay(spark, progress, rows, out)
    finally:
        spark.stop()
    rows += spreads(rows)
    return Report("bench pipeline", rows, checks(rows), round(time.monotonic() - started_s, 1))


def _throughput(
    spark: SparkSession, progress: Progress, rows: list[dict[str, Any]], out: Path | None, rounds: int
) -> None:
    with _log(out, "small", SMALL_ROWS) as small, _log(out, "large", LARGE_ROWS) as large:
        bench = Workbench(spark, small)
        progress.step(f"Filling the log with {PEER_ROWS:,} rows.")
        fill(small.installation, 0, PEER_ROWS, progress)
        parquet = write_parquet(small.installation, small.state / "parquet", PEER_ROWS)
        bench.jetstream_to_delta()  # the first run of each kind pays for compiling and importing
        bench.parquet_to_delta(parquet)
        ways: dict[str, Way] = {
            NATSPY: (NATSPY_ROWS, lambda: _natspy_s(small.installation)),
            JETSTREAM: (PEER_ROWS, bench.jetstream_to_noop),
            DELTA: (PEER_ROWS, bench.jetstream_to_delta),
            PARQUET: (PEER_ROWS, lambda: bench.parquet_to_delta(parquet)),
        }
        for pair in range(rounds):
            progress.step(f"Comparing with nats-py and parquet, {pair + 1} of {rounds}.")
            rows += in_pairs(ways, pair)
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
        rows.extend(_row(SMALL, SMALL_ROWS, small.jetstream_to_delta()) for _ in range(3))
        if repetition < LARGE_REPETITIONS:
            progress.step(f"Draining {LARGE_ROWS:,} rows, {repetition + 1} of {LARGE_REPETITIONS}.")
            rows.append(_row(LARGE, LARGE_ROWS, large.jetstream_to_delta()))


def in_pairs(ways: Mapping[str, Way], pair: int) -> Iterator[dict[str, Any]]:
    """Each pair once, every other time the other way round: a machine that gets slower slows both alike."""
    for both in PAIRS.values():
        for what in both if pair % 2 else reversed(both):
            count, seconds_of = ways[what]
            yield {**_row(what, count, seconds_of()), "pair": pair}


def _row(what: str, count: int, seconds: float) -> dict[str, Any]:
    return {
        "what": what,
        "rows": count,
        "seconds": round(seconds, 3),
        "rows_per_s": round(count / seconds),
        "us_per_row": round(seconds / count * 1e6, 3),
    }


def _natspy_s(installation: Installation) -> float:
    """Rows through nats-py: a pull consumer per slice, fetch(1000), no acknowledgements."""

    async def read() -> float:
        client = await nats.connect(list(installation.data_urls))
        stream = client.jetstream()
        started_s = time.monotonic()
        for slice_ in range(installation.slices):
            config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.ALL, mem_storage=True)
            consumer = await stream.pull_subscribe("", stream=f"SLICE_{slice_}", config=config)
            left = NATSPY_ROWS // installation.slices
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
        rows.append({"what": EMPTY, **_spread(empty_batches_s(spark))})
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
        rows.append({"what": DELAY, **_spread(delays), "fleet": summary})
        progress.step("Measuring empty batches again.")
        rows.append({"what": EMPTY, **_spread(empty_batches_s(spark))})


def _spread(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)

    return {"count": len(ordered), "p5_s": at(0.05), "p50_s": at(0.5), "p95_s": at(0.95)}
