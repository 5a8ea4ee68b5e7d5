"""The tables as the oracle reads them: with deltalake, and with nothing of the pipeline."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tidegate_bench.crashes.oracle import COLUMNS, TOPIC, Row

TRIES_S_MAX = 30.0

Value = TypeVar("Value")


class StoredTables:
    def __init__(self, directory: Path, slices: int) -> None:
        self._readings, self._means, self._rejected = (directory / name for name in ("readings", "means", "rejected"))
        self._slices = slices
        self._handle: DeltaTable | None = None

    def readings(self) -> list[Row]:
        """All rows, with times in microseconds."""
        return _tried(lambda: _rows(self._readings, ("device", "boot", "seq", "slice", *COLUMNS)))

    def means(self) -> list[Row]:
        return _tried(lambda: _rows(self._means, ("device", "window_start", "count", "sum_micro")))

    def rejected(self, prefix: str) -> list[str]:
        """Why something of ours was rejected."""
        if not self._rejected.exists():
            return []
        rows = _tried(lambda: _rows(self._rejected, ("topic", "reason")))
        return [str(row["reason"]) for row in rows if str(row["topic"]).startswith(f"{TOPIC}/{prefix}")]

    def positions(self) -> tuple[int, ...]:
        """How far each slice is: what its transaction in the table's log says."""

        def read() -> tuple[int, ...]:
            try:
                if self._handle is None:
                    self._handle = DeltaTable(str(self._readings))
                else:
                    self._handle.update_incremental()
            except DeltaError:
                self._handle = None  # the log was cleaned beyond what it knows
                raise
            return tuple(self._handle.transaction_version(f"slice-{number}") or 0 for number in range(self._slices))

        return _tried(read)


def _rows(table: Path, columns: tuple[str, ...]) -> list[Row]:
    found = DeltaTable(str(table)).to_pyarrow_dataset().to_table(columns=list(columns))
    for place, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            found = found.set_column(place, field.name, found[field.name].cast(pa.timestamp("us")).cast(pa.int64()))
    return list(found.to_pylist())


def _tried(read: Callable[[], Value]) -> Value:
    """Until it works: compaction, a clean-up of the log or a full disk may meet a reader at any moment."""
    deadline_s = time.monotonic() + TRIES_S_MAX
    while True:
        try:
            return read()
        except (DeltaError, OSError, pa.ArrowException):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.2)
