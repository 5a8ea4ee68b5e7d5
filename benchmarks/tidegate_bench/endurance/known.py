"""A million devices: what each costs in memory, and what a batch costs whose devices are not in memory."""

import mmap
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tidegate.pipeline.tables.identities import KnownIdentities, Runs, keys_of
from tidegate.pipeline.tables.snapshots import save_known
from tidegate.report.progress import Progress
from tidegate_bench.endurance.batches import SLICES, Driver, names
from tidegate_bench.rig.spreads import ratios_of

DEVICES = 1_000_000
BATCH_DEVICES = 4_000
PAIRS = 11
DAY = 20_000


def measure(progress: Progress) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidegate-endurance-") as directory:
        progress.step(f"{DEVICES:,} devices: one reading of each, in memory and written down.")
        bytes_per_device = _memory(Path(directory) / "memory", progress)
        progress.step("Batches of devices that are known, and of devices that are in the file alone.")
        known, cold = _batches(Path(directory) / "tables", progress)
    return {
        "devices": DEVICES,
        "identity_bytes_per_device": round(bytes_per_device, 1),
        "known_batch_s": round(statistics.median(known), 4),
        "cold_batch_s": round(statistics.median(cold), 4),
        **ratios_of("cold_batch_ratio", cold, known),
    }


def _memory(directory: Path, progress: Progress) -> float:
    """Bytes of this process per device, everything counted: entries in memory before they are written, mapped after."""
    tables = _Tables(directory)
    process = psutil.Process()
    before = process.memory_info().rss
    known = [KnownIdentities() for _ in range(SLICES)]
    each = DEVICES // SLICES
    most = 0
    for slice_, seen in enumerate(known):
        for start in range(0, each, 25_000):
            devices = names(25_000, start, [slice_])[slice_]
            keys = np.sort(keys_of(devices, np.ones(len(devices), np.int64)))
            seen.add(Runs.of(keys, np.full(len(keys), 7, np.int64)), DAY)
        progress.update(f"slice {slice_ + 1} of {SLICES}")
        del devices, keys
        save_known(tables, slice_, 1, seen, 0, fsync=False)  # type: ignore[arg-type]
        most = max(most, process.memory_info().rss - before)
    # Every page of the mapped files, as if all devices had just reported.
    assert sum(int((seen._base != 0).any(axis=0).sum()) for seen in known) == each * SLICES
    return float(max(most, process.memory_info().rss - before)) / DEVICES


class _Tables:
    """Snapshots need to know where, and nothing else of the tables."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory


def _batches(directory: Path, progress: Progress) -> tuple[list[float], list[float]]:
    """Seconds per batch, interleaved: devices that reported just now, and devices that did so long ago."""
    driver = Driver(directory, 1)
    each = DEVICES // SLICES
    for start in range(0, each, 25_000):
        progress.update(f"{start * SLICES:,} of {DEVICES:,} readings stored")
        driver.commit(driver.task(names(min(25_000, each - start), start), 0))
    driver.sink._snapshot_s = 1e9  # from here on this part says what is written down when
    for slice_, seen in driver.sink._seen.items():
        save_known(driver.sink._tables, slice_, driver.offsets[slice_], seen, 0, fsync=False)
    _timed(driver, 0, 1)
    known, cold = [], []
    for pair in range(PAIRS):
        progress.update(f"pair {pair + 1} of {PAIRS}")
        known.append(_timed(driver, 0, 2 + pair))
        _let_go(driver)
        cold.append(_timed(driver, (pair + 1) * BATCH_DEVICES // SLICES, 1))
    driver.close()
    return known, cold


def _timed(driver: Driver, first: int, seq: int) -> float:
    """Seconds of a whole batch but for Spark's own: its tasks, and the driver's half."""
    started_s = time.perf_counter()
    driver.commit(driver.task(names(BATCH_DEVICES // SLICES, first), seq))
    return time.perf_counter() - started_s


def _let_go(driver: Driver) -> None:
    """Throw the mapped pages out of memory, and their file out of the page cache."""
    for path in (driver.settings.tables / "identities").rglob("*.known"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for seen in driver.sink._seen.values():
        mapped = getattr(seen._base, "_mmap", None)
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)
    for path in (driver.settings.tables / "identities").rglob("*.known"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
