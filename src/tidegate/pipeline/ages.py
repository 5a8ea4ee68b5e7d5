"""How old readings were when the tables had them: the measure that everything else is judged by.

A reading's age is the time of its commit less the time it was taken. A message that stands for several readings waited
on its device as well, so it counts from the middle between its first and its last one, and as many times as it stands
for readings. The commit's time is that of the entry in the table's log: what a reader of the table could see, when.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.model.errors import TidegateError
from tidegate.pipeline.tables.following import LogFollower

_COLUMNS = ["device", "time", "count", "first", "last", "arrived"]

Seconds = npt.NDArray[np.float64]


# The messages of some files, column by column, in less than forty bytes each: a device is the number of its name.
_Part = dict[str, npt.NDArray[Any]]


class Ages:
    """Every message that the readings' table gets from now on. Call ``follow`` regularly while it does.

    Files are read as they are committed, so none has to be there at the end. ``messages`` says how many it has.
    """

    def __init__(self, table: Path) -> None:
        self._table = table
        self._log = LogFollower(table)
        self._devices: dict[str, int] = {}
        self._parts: list[_Part] = []
        self.messages = 0

    def follow(self) -> None:
        """Take in what was committed since the last call."""
        for entry in self._log.follow():
            for path in entry.appended():
                rows = self._read(path)
                self._parts.append(self._part(rows, entry.at_s))
                self.messages += rows.num_rows

    def rows(self) -> pa.Table:
        """Who sent each message, when it was taken, arrived in the log and was committed, and its readings.

        Columns: ``device``, ``committed_s``, ``arrived_s``, ``taken_s``, ``count``; times are Unix time. What was
        committed since the last ``follow`` is not among them.
        """
        parts = self._parts or [self._part(_empty(), 0.0)]
        together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        self._parts = [together]
        names = pa.array(list(self._devices), pa.string())
        return pa.table({**together, "device": pa.DictionaryArray.from_arrays(together["device"], names)})

    def _read(self, path: str) -> pa.Table:
        try:
            with pq.ParquetFile(self._table / path) as file:
                return file.read(columns=_COLUMNS, use_threads=False)
        except FileNotFoundError:
            raise TidegateError(
                f"The file {path} of {self._table} was removed before its rows were measured: ask for new commits "
                "more often than removed files are vacuumed."
            ) from None

    def _part(self, rows: pa.Table, committed_s: float) -> _Part:
        last = _seconds(rows["time"])
        first, final = (_seconds(pc.coalesce(rows[name], rows["time"])) for name in ("first", "last"))
        count = rows["count"].to_numpy().astype(np.int64)
        return {
            "device": self._numbers(rows["device"]),
            "committed_s": np.full(rows.num_rows, committed_s),
            "arrived_s": _seconds(rows["arrived"]),
            "taken_s": np.where(count > 1, (first + final) / 2, last),
            "count": count,
        }

    def _numbers(self, names: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        encoded = names.combine_chunks().dictionary_encode()
        known = self._devices
        numbers = np.array([known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()], np.int32)
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
        return numbers[places]


def delays_s(rows: pa.Table, skip_s: float) -> list[float]:
    """For each stored message, the time of its commit less the time it was taken; without the first ``skip_s``."""
    committed_s, taken_s = (rows[name].to_numpy() for name in ("committed_s", "taken_s"))
    late = committed_s - committed_s.min(initial=float("inf")) >= skip_s
    return [float(delay) for delay in (committed_s - taken_s)[late]]


def _empty() -> pa.Table:
    stamp = pa.timestamp("us", tz="UTC")
    return pa.schema(zip(_COLUMNS, [pa.string(), stamp, pa.int64(), *[stamp] * 3], strict=True)).empty_table()


def _seconds(stamps: pa.ChunkedArray) -> Seconds:
    seconds: Seconds = stamps.cast(pa.int64()).to_numpy() / 1e6
    return seconds
