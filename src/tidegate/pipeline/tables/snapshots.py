"""Written-down identities of a slice, so that whoever takes the slice need not read the whole table.

A snapshot is a function of the slice's committed prefix, so it does not matter who wrote it or when: any snapshot at
or below the committed offset is right, and the readings behind it complete it. Its entries are columns that are mapped
into memory as they stand. One that is damaged or gone makes the past doubtful: it is looked up in the table as devices
come by, and no start fails for it.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.machine.memory import give_back
from tidegate.pipeline.tables.identified import identities_of
from tidegate.pipeline.tables.identities import COLUMNS, ENTRY_BYTES, Integers, KnownIdentities, Runs
from tidegate.pipeline.tables.tables import Tables

# Of a slice: 224 MB, and with the second snapshot and one that is being written three times that. Some millions of
# devices that boot once a month fit into eight slices; who has more boots made up.
ENTRIES_MAX = 4_000_000
_KEPT = 2
_MANY = 50_000  # entries that went from memory to the file: worth giving their pages back
_MAGIC = 0x54474B4E4F574E32  # TGKNOWN2
_HEADER = np.dtype([("magic", "<u8"), ("entries", "<i8"), ("doubted_until_day", "<i8"), ("checksum", "<u8")])
_SUFFIX = ".known"
_LEFTOVER_S = 3_600.0
# A slice of which nothing was written down yet, because it is new, is read whole up to this many rows.
_SHORT = 100_000
_IDENTITY = ["slice", "device", "identified", "boot", "seq"]


class Loaded(NamedTuple):
    """The identities up to a committed offset; ``problem`` where a snapshot could not be used."""

    known: KnownIdentities
    problem: str | None = None


def _directory(tables: Tables, slice_: int) -> Path:
    return tables.directory / "identities" / f"slice-{slice_}"


def _offset(path: Path) -> int:
    """-1 where it is none of ours."""
    return int(path.stem) if path.stem.isdecimal() else -1


def save_known(
    tables: Tables,
    slice_: int,
    offset: int,
    known: KnownIdentities,
    day_min: int,
    *,
    fsync: bool,
    horizon_days: int = 30,
) -> int:
    """Write all entries that were touched since ``day_min``, and let memory go of them.

    How many of them it had to leave out, because there are more than ``ENTRIES_MAX``.
    """
    directory = _directory(tables, slice_)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{offset:020d}{_SUFFIX}"
    partial = path.with_suffix(f".{os.getpid()}")
    cut_off = _write(partial, known, day_min, horizon_days, fsync=fsync)
    partial.replace(path)
    released = known.recent_entries
    known.rebase(_mapped(path))
    if released > _MANY:
        give_back()
    for old in sorted(directory.glob(f"*{_SUFFIX}"))[:-_KEPT]:
        old.unlink(missing_ok=True)
    _remove_leftovers(directory, path.stat().st_mtime)
    return cut_off


def too_many(slice_: int, cut_off: int) -> str:
    return (
        f"Slice {slice_} has {cut_off:,} more pairs of device and boot than the {ENTRIES_MAX:,} that are remembered: "
        "those are looked up in the table when they come again, which takes longer. Find out in the readings' table "
        "which devices make up names or boots, or use more slices."
    )


def _remove_leftovers(directory: Path, now_s: float) -> None:
    """What writers that were killed left behind half written. ``now_s`` is by the clock that stamps files."""
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            if path.suffix != _SUFFIX and path.stat().st_mtime < now_s - _LEFTOVER_S:
                path.unlink()


def _remove_unborn(tables: Tables, slice_: int, committed: int) -> None:
    """A table that was set back (by a power failure, from a backup) will come to these offsets with other readings.

    Nobody else's can be among them: who wrote one had committed before, so the table was there already.
    """
    later = [path for path in _directory(tables, slice_).glob(f"*{_SUFFIX}") if _offset(path) > committed]
    if later:
        tables.readings.refresh()
        if tables.readings.position(slice_).offset == committed:
            for path in later:
                path.unlink(missing_ok=True)


def load_known(
    tables: Tables, slice_: int, committed: int, day: int, horizon_days: int, *, day_min: int | None = None
) -> Loaded:
    """The identities of everything of this slice up to ``committed``.

    ``day`` is today by the clock that is ahead, ``day_min`` by the one that is behind, where there are two.
    """
    day_min = day if day_min is None else day_min
    problems = []
    _remove_unborn(tables, slice_, committed)
    for path in sorted(_directory(tables, slice_).glob(f"*{_SUFFIX}"), reverse=True):
        offset = _offset(path)
        if not 0 <= offset <= committed:
            continue
        try:
            known = _read(path)
        except FileNotFoundError:  # its writer has a newer one and removed this
            continue
        except (OSError, ValueError) as error:
            problems.append(f"The identities in {path} cannot be used ({error}).")
            continue
        behind = tables.readings.rows(_IDENTITY, slice_, offset, committed)
        _complete(known, behind, day, day_min)
        return Loaded(known, problems[0] if problems else None)
    if not committed:
        return Loaded(KnownIdentities())
    if not _directory(tables, slice_).exists() and committed <= _SHORT:
        known = KnownIdentities()
        _complete(known, tables.readings.rows(_IDENTITY, slice_, 0, committed), day, day_min)
        return Loaded(known)
    what = problems[0] if problems else f"The identities of slice {slice_} are not written down."
    remedy = f"Devices are looked up in the table as they come by, for {horizon_days} days; nothing has to be done."
    return Loaded(KnownIdentities(doubted_until_day=day + horizon_days), f"{what} {remedy}")


def _complete(known: KnownIdentities, behind: pa.Table, day: int, day_min: int) -> None:
    if behind.num_rows:
        found = identities_of(behind)
        for runs in found.runs(np.ones(len(found.rows), bool)).values():
            # Who is not there though it may have been before stays so: the table knows more of it than these rows.
            absent = known.absent(np.unique(runs.keys), day_min)
            is_there = ~np.isin(runs.keys, absent)
            known.add(Runs(runs.keys[is_there], runs.lows[is_there], runs.highs[is_there]), day)


def _write(path: Path, known: KnownIdentities, day_min: int, horizon_days: int, *, fsync: bool) -> int:
    """In two passes over all entries, so that memory never holds them: one counts, one writes."""
    cut = known.cut(day_min, ENTRIES_MAX)
    entries = cut.entries
    if cut.gone:
        known.doubt(cut.newest_day + horizon_days + 1)  # until then it would have been kept
    with path.open("w+b") as file:
        at = 0
        for part in known.kept(day_min, cut):
            for column in range(COLUMNS):
                file.seek(_HEADER.itemsize + (column * entries + at) * part.itemsize)
                file.write(part[column].tobytes())
            at += part.shape[1]
        file.seek(_HEADER.itemsize)
        header = np.array((_MAGIC, entries, known.doubted_until_day, _checksum(file)), _HEADER)
        file.seek(0)
        file.write(header.tobytes())
        if fsync:
            file.flush()
            os.fsync(file.fileno())
    return cut.gone


def _checksum(file: BinaryIO) -> int:
    """Of the rest of a file."""
    found = 0
    while part := file.read(1 << 20):
        found = zlib.crc32(part, found)
    return found


def _read(path: Path) -> KnownIdentities:
    """Raises ValueError with what is wrong with it."""
    with path.open("rb") as file:
        content = file.read(_HEADER.itemsize)
        if len(content) < _HEADER.itemsize:
            raise ValueError("it is cut short")
        magic, entries, doubted_until_day, checksum = np.frombuffer(content, _HEADER)[0].tolist()
        if magic != _MAGIC or path.stat().st_size != _HEADER.itemsize + entries * ENTRY_BYTES:
            raise ValueError("its length is not what it says")
        found = _checksum(file)
    if found != checksum:
        raise ValueError("its checksum is wrong")
    return KnownIdentities(_mapped(path), doubted_until_day)


def _mapped(path: Path) -> Integers:
    entries = (path.stat().st_size - _HEADER.itemsize) // ENTRY_BYTES
    if not entries:  # nothing cannot be mapped
        return np.empty((COLUMNS, 0), np.int64)
    return np.memmap(path, np.int64, "r", _HEADER.itemsize, (COLUMNS, entries))
