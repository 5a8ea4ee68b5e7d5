"""Which files to merge and which days to drop: decisions over what the table's log says, without IO.

A look-up of a slice opens, per day, every file that may hold that slice. So two things are kept low: how many files a
day has, and how deep a slice is (how many files hold it). Small files are merged by size, like with like, so that a
row is written again only when its file has grown many times over. A file that has reached the least size holds few
slices, because it was cut where a slice ends; such files are merged only with files that hold the same slice. What
comes of a merge does not overlap, so every merge makes a slice less deep, or files fewer, and merging comes to an end.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

SETTLED_S = 3_600.0
FILES_MAX = 2_000  # in one merge, so that it is over in seconds
_CLASS_RATIO = 4
# So far may the clock be ahead of the tables before days are dropped by it, and on so many days must data have come
# behind a longer pause to be believed. A clock that is wrong is set right sooner than that, or somebody notices.
PAUSE_DAYS_MAX = 30
VOUCHING_DAYS = 7


@dataclass(frozen=True)
class DataFile:
    """An active file, as the log has it. ``low`` and ``high`` are the slices between which its rows are."""

    path: str
    date: date
    size: int
    rows: int
    low: int
    high: int
    modified_s: float


Merge = tuple[DataFile, ...]


@dataclass(frozen=True)
class Limits:
    bytes_min: int  # a file of this size ends where its slice ends
    bytes_max: int  # a file of this size is left alone
    files_min: int  # so many of about one size are worth a merge


def next_merges(files: Iterable[DataFile], now_s: float, today: date, limits: Limits) -> list[Merge]:
    """What to merge next: the files of one day that most need it. Nothing where every day is in order."""
    by_date: dict[date, list[DataFile]] = {}
    for file in files:
        by_date.setdefault(file.date, []).append(file)
    found: list[Merge] = []
    for day, those in sorted(by_date.items()):
        # Messages of a closed day may still be on their way; it is finished when nothing has come for a while.
        is_open = day >= today or max(file.modified_s for file in those) > now_s - SETTLED_S
        found = max(found, _merges_of_day(those, limits.files_min if is_open else 2, limits), key=_files_in)
    return found


def _files_in(merges: list[Merge]) -> int:
    return sum(map(len, merges))


def _merges_of_day(files: Sequence[DataFile], files_min: int, limits: Limits) -> list[Merge]:
    small = [file for file in files if file.size < limits.bytes_min]
    large = [file for file in files if limits.bytes_min <= file.size < limits.bytes_max]
    return max(_of_like_size(small, files_min, limits), _of_one_slice(large, files_min, limits), key=_files_in)


def _of_like_size(files: Sequence[DataFile], files_min: int, limits: Limits) -> list[Merge]:
    """Enough files of one class of size, and all that are smaller. Where two are enough, their size does not matter."""
    if files_min == 2:
        return _fitting(files, files_min, limits)
    classes = Counter(_size_class(file) for file in files)
    highest = max((size_class for size_class, count in classes.items() if count >= files_min), default=None)
    if highest is None:
        return []
    return _fitting([file for file in files if _size_class(file) <= highest], files_min, limits)


def _of_one_slice(files: Sequence[DataFile], files_min: int, limits: Limits) -> list[Merge]:
    """Enough files that hold the same slice."""
    found: list[Merge] = []
    for slice_ in sorted({file.low for file in files}):  # where one begins, as many overlap as anywhere
        holders = [file for file in files if file.low <= slice_ <= file.high]
        found = max(found, _fitting(holders, files_min, limits), key=_files_in)
    return found


def _fitting(files: Sequence[DataFile], files_min: int, limits: Limits) -> list[Merge]:
    """Beginning with the smallest, as many at a time as one file can take."""
    merges: list[Merge] = []
    chosen: list[DataFile] = []
    total = 0
    for file in sorted(files, key=lambda file: (file.size, file.path)):
        if chosen and (total + file.size > limits.bytes_max or len(chosen) == FILES_MAX):
            merges.append(tuple(chosen))
            chosen, total = [], 0
        chosen.append(file)
        total += file.size
    return [merge for merge in (*merges, tuple(chosen)) if len(merge) >= files_min]


def _size_class(file: DataFile) -> int:
    return int(math.log(max(file.size, 1), _CLASS_RATIO))


def rows_per_file(files: Sequence[DataFile], limits: Limits) -> tuple[int, int]:
    """From how many rows on a file ends with its slice, and at how many it ends anyway, judged by what is merged.

    What is merged fits into one file. So a file that is cut anyway holds rows that take twice the room they took.
    """
    bytes_per_row = sum(file.size for file in files) / max(1, sum(file.rows for file in files))
    low, high = limits.bytes_min / max(bytes_per_row, 0.01), 2 * limits.bytes_max / max(bytes_per_row, 0.01)
    return max(1, math.ceil(low)), max(1, math.ceil(high))


def vouched(dates: Iterable[date]) -> date | None:
    """The newest day that the tables themselves vouch for; None where they have none.

    Days of arrival follow each other. One that lies far behind the last may be real, after a long pause, or the work of
    a clock that was wrong: it counts once data has come on several days since.
    """
    runs: list[list[date]] = []
    for day in sorted(set(dates)):
        if runs and day - runs[-1][-1] <= timedelta(days=PAUSE_DAYS_MAX):
            runs[-1].append(day)
        else:
            runs.append([day])
    return next((run[-1] for run in reversed(runs) if len(run) >= VOUCHING_DAYS or run is runs[0]), None)


def clock_problem(today: date, dates: Iterable[date]) -> str | None:
    """Why no day may be dropped by this clock without a person's word."""
    newest = vouched(dates)
    if newest is None or today - newest <= timedelta(days=PAUSE_DAYS_MAX):
        return None
    return f"the clock says {today}, and the newest day that the tables vouch for is {newest}"


def expired(files: Iterable[DataFile], today: date, days: int) -> tuple[DataFile, ...]:
    """The files of all dates before the last so many, today not counted; none where ``days`` is 0."""
    if not days:
        return ()
    first_kept = today - timedelta(days=days)
    return tuple(file for file in files if file.date < first_kept)
