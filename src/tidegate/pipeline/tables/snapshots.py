"""Written-down identities of a slice, so that whoever takes the slice need not read the whole table.

A snapshot is a function of the slice's committed prefix, so it does not matter who wrote it or when: any snapshot at
or below the committed offset is right, and the readings behind it complete it.
"""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.pipeline.tables.identities import KnownIdentities, Run
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import identity_groups, runs_of

_KEPT = 2


def _directory(tables: Tables, slice_: int) -> Path:
    return tables.directory / "identities" / f"slice-{slice_}"


def save_known(tables: Tables, slice_: int, offset: int, seen: KnownIdentities) -> None:
    directory = _directory(tables, slice_)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{offset:020d}.parquet"
    partial = path.with_suffix(f".{os.getpid()}")
    pq.write_table(seen.snapshot(), partial, compression="zstd")
    partial.replace(path)
    for old in sorted(directory.glob("*.parquet"))[:-_KEPT]:
        old.unlink(missing_ok=True)


def load_known(tables: Tables, slice_: int, committed: int) -> KnownIdentities:
    """The identities of everything of this slice up to ``committed``."""
    seen, offset = _newest(_directory(tables, slice_), committed)
    columns = ["slice", "device", "identified", "boot", "seq"]
    behind = tables.readings.rows(columns, slice_, offset, committed)
    if behind.num_rows:
        rows: pa.RecordBatch = behind.combine_chunks().to_batches()[0]
        for _, device, boot, sequences, _ in identity_groups(rows):
            for start, stop in runs_of(sequences):
                seen.add(Run(device, boot, int(sequences[start]), int(sequences[stop - 1])))
    return seen


def _newest(directory: Path, committed: int) -> tuple[KnownIdentities, int]:
    for path in sorted(directory.glob("*.parquet"), reverse=True):
        if int(path.stem) <= committed:
            try:
                return KnownIdentities.restore(pq.ParquetFile(path).read(use_threads=False)), int(path.stem)
            except FileNotFoundError:  # its writer has a newer one and removed this
                continue
    return KnownIdentities(), 0
