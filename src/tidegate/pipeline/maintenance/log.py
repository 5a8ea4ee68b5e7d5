"""A table's log kept short: a checkpoint first, then everything away that it makes needless.

Every refresh and every commit of every writer lists the whole log, so its length is paid for all the time. Nothing goes
that the newest complete checkpoint at or below the cut does not cover, and the oldest goes first: whatever moment this
is ended at, what is left can be read. Writers and readers that have seen the table within the retention can go on from
there entry by entry.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from tidegate.pipeline.maintenance.table import sync
from tidegate.pipeline.tables.checkpoints import CHECKPOINT, ENTRY, LogListing

CHECKPOINT_EVERY = 100
YOUNG_S = 30.0  # what is younger than this may be read right now
LEFTOVER_S = 3_600.0
_UNLINKS_PER_STEP = 2_000


def first_kept(
    entries: Sequence[int], checkpoints: Sequence[int], *, aged: int, young: int, entries_max: int
) -> int | None:
    """The version that the log shall begin with: a checkpoint's. None where nothing may go.

    ``aged`` is the first version within the retention, ``young`` the first that is too young to go at all. What is more
    than ``entries_max`` goes even within the retention.
    """
    if not entries:
        return None
    surplus = entries[max(0, len(entries) - entries_max)]
    cut = min(max(aged, surplus), young)
    covered = [version for version in checkpoints if version <= cut and version <= entries[-1]]
    return max(covered, default=None)


def clean(log: LogListing, now_s: float, retention_s: float, entries_max: int, rest: Callable[[], None]) -> int:
    """Remove what the log no longer needs; how many entries that were."""
    aged = _first_within(log, now_s - retention_s)
    young = _first_within(log, now_s - YOUNG_S)
    start = first_kept(log.entries, log.checkpoints, aged=aged, young=young, entries_max=entries_max)
    if start is None or not (log.entries[0] < start or log.checkpoints[0] < start):
        return 0
    kept = log.directory / f"{start:020d}{CHECKPOINT}"
    pq.ParquetFile(kept).close()  # raises if it is not whole
    sync(kept)
    old = [version for version in log.entries if version < start]
    names = [f"{version:020d}{CHECKPOINT}" for version in log.checkpoints if version < start]
    # A checkpoint goes before the entries that it stands for: what begins with a checkpoint can be read.
    names += [f"{version:020d}{ENTRY}" for version in old]
    for at in range(0, len(names), _UNLINKS_PER_STEP):
        for name in names[at : at + _UNLINKS_PER_STEP]:
            (log.directory / name).unlink(missing_ok=True)
        rest()
    return len(old)


def _first_within(log: LogListing, since_s: float) -> int:
    """The first version that was written since then. Versions are written in order, so few have to be looked at."""
    place = bisect_left(log.entries, since_s, key=lambda version: _written_s(log.directory, version))
    return log.entries[place] if place < len(log.entries) else log.newest + 1


def _written_s(directory: Path, version: int) -> float:
    try:
        return (directory / f"{version:020d}{ENTRY}").stat().st_mtime
    except FileNotFoundError:  # cleaned by somebody else meanwhile, so it was old
        return 0.0


def remove_leftovers(log: LogListing, now_s: float) -> int:
    """What writers that died left beside the entries: nobody reads it, but everybody lists it."""
    removed = 0
    for name in log.others:
        path = log.directory / name
        is_temporary = name.endswith(".tmp") or "#" in name
        try:
            if is_temporary and path.is_file() and path.stat().st_mtime < now_s - LEFTOVER_S:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed
