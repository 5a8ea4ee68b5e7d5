"""Removing files for good: those that no version of the table knows, and those that were replaced long ago.

A file of a batch that is still running is in no table either. It is told from a crash's leftover by its age alone, so
that age is counted by the clock that stamps files, and only while that clock was not set.
"""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path

from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.tables.file_clock import file_clock_s
from tidegate.pipeline.tables.tables import DATE

_UNLINKS_PER_STEP = 500


def removable(table: MaintainedTable, after_h: int) -> list[Path]:
    """What Delta says may go, as far as it is ours and old enough."""
    named = table.refresh().vacuum(after_h, dry_run=True, enforce_retention_duration=False, full=True)
    now_s = file_clock_s(table.path)
    ours = (table.path / path for path in named if path.startswith(f"{DATE}=") and path.endswith(".parquet"))
    return [path for path in ours if _is_older(path, now_s - after_h * 3_600)]


def _is_older(path: Path, than_s: float) -> bool:
    try:
        return path.stat().st_mtime < than_s
    except FileNotFoundError:
        return False


def remove(table: MaintainedTable, paths: Iterable[Path], rest: Callable[[], None]) -> int:
    """Remove these; how many. A maintainer that froze must not bring one of them back, so it is fenced off first."""
    paths = list(paths)
    if paths:
        table.claim()
    for number, path in enumerate(paths, 1):
        path.unlink(missing_ok=True)
        if number % _UNLINKS_PER_STEP == 0:
            rest()
    return len(paths)


def remove_empty_days(table: MaintainedTable, today: date) -> None:
    """Directories of days that have no file any more. A node may be about to write into one of the last days'."""
    for directory in table.path.glob(f"{DATE}=*"):
        try:
            day = date.fromisoformat(directory.name.removeprefix(f"{DATE}="))
        except ValueError:
            continue
        if day < today - timedelta(days=2) and not any(directory.iterdir()):
            directory.rmdir()
