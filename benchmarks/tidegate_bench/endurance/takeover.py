"""Taking a slice over from a table of 10^8 rows, against a fresh table: from the claim to the first commit."""

import shutil
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.pipeline.tables.identities import KnownIdentities, Runs, keys_of
from tidegate.pipeline.tables.snapshots import save_known
from tidegate.pipeline.tables.tables import Step, Tables
from tidegate.pipeline.tables.writing import EPOCH, write_file
from tidegate.pipeline.transforms.parsing import READINGS
from tidegate.report.progress import Progress
from tidegate_bench.endurance.batches import SLICES, Driver, names, settings_for
from tidegate_bench.rig.spreads import ratios_of

ROWS = 100_000_000
DATES = 4
DEVICES_PER_SLICE = 125_000
FILE_ROWS = 1_000_000
PAIRS = 11
BATCH_DEVICES = 50


def measure(progress: Progress) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidegate-endurance-") as directory:
        aged, fresh = Path(directory) / "aged", Path(directory) / "fresh"
        files = _fill(aged, progress)
        shutil.rmtree(fresh, ignore_errors=True)
        _first(fresh)
        old, new = [], []
        for pair in range(PAIRS):
            progress.update(f"pair {pair + 1} of {PAIRS}")
            slice_ = pair % SLICES
            new.append(_take_over(fresh, slice_, pair + 2))
            old.append(_take_over(aged, slice_, pair + 2))
    return {
        "rows": ROWS,
        "files": files,
        "takeover_aged_s": round(statistics.median(old), 4),
        "takeover_fresh_s": round(statistics.median(new), 4),
        **ratios_of("takeover_aged_ratio", old, new),
    }


def _first(directory: Path) -> None:
    driver = Driver(directory, 1)
    driver.commit(driver.task(names(BATCH_DEVICES), 0))
    driver.close()


def _take_over(directory: Path, slice_: int, epoch: int) -> float:
    """A node that has never seen these tables claims the slice, loads what it must know, and commits."""
    started_s = time.perf_counter()
    driver = Driver(directory, epoch, [slice_])
    driver.commit(driver.task(names(BATCH_DEVICES, slices=[slice_]), 10_000_000 + epoch))
    took_s = time.perf_counter() - started_s
    driver.close()
    return took_s


def _fill(directory: Path, progress: Progress) -> int:
    """Rows as maintenance leaves them: by date, one slice a file, sorted by device; and the identities written down."""
    tables = Tables(directory)
    tables.claim(dict.fromkeys(range(SLICES), 1))
    today = datetime.now(UTC).date()
    per_date = ROWS // SLICES // DATES
    files = 0
    for back in reversed(range(DATES)):
        day = today - timedelta(days=back)
        for slice_ in range(SLICES):
            first = (DATES - 1 - back) * per_date
            progress.update(f"{(first * SLICES + slice_ * per_date):,} of {ROWS:,} rows written")
            adds = [
                write_file(settings_for(directory), "readings", _rows(slice_, first, start, day), day)
                for start in range(0, per_date, FILE_ROWS)
            ]
            files += len(adds)
            step = {slice_: Step(1, first, first + per_date)}
            tables.readings.commit(adds, step)
            tables.means.commit([], step)
    for slice_ in range(SLICES):
        keys = np.sort(keys_of(names(DEVICES_PER_SLICE, slices=[slice_])[slice_], np.ones(DEVICES_PER_SLICE, np.int64)))
        known = KnownIdentities()
        known.add(Runs.of(keys, np.full(len(keys), 1_000_000, np.int64)), (today - EPOCH).days)
        save_known(tables, slice_, DATES * per_date, known, 0, fsync=False)
    return files


def _rows(slice_: int, first: int, start: int, day: Any) -> pa.Table:
    """A file's part of a date: consecutive devices, each with its readings of that date in order."""
    count = min(FILE_ROWS, ROWS // SLICES // DATES - start)
    numbers = np.arange(start, start + count)
    per_device = max(1, ROWS // SLICES // DATES // DEVICES_PER_SLICE)
    codes = np.minimum(numbers // per_device, DEVICES_PER_SLICE - 1)
    devices = pa.array(names(DEVICES_PER_SLICE, slices=[slice_])[slice_])
    stamps = pa.array((day - EPOCH).days * 86_400_000_000 + numbers % 86_400 * 1_000_000)
    stamp = stamps.cast(pa.timestamp("us", tz="UTC"))
    columns = {
        "slice": pa.array(np.full(count, slice_, np.int32)),
        "offset": pa.array(first + 1 + numbers),
        "device": devices.take(pa.array(codes)),
        "identified": pa.array(np.ones(count, bool)),
        "boot": pa.array(np.ones(count, np.int64)),
        "seq": pa.array(first + numbers % per_device),
        "time": stamp,
        "value": pa.array(numbers % 50 + 0.25),
        "count": pa.array(np.ones(count, np.int64)),
        "arrived": stamp,
        "topic": pa.array([f"telemetry/{name}" for name in devices.to_pylist()]).take(pa.array(codes)),
    }
    empty = {name: pa.nulls(count, READINGS.field(name).type) for name in READINGS.names if name not in columns}
    return pa.table({**columns, **empty}).select(READINGS.names).cast(READINGS)
