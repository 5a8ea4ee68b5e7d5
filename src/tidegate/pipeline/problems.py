"""Why a query ended, in one sentence: from errors and the evidence they carry, not from the text of a traceback."""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tidegate.machine.evidence import Evidence
from tidegate.model.errors import TidegateError

FULL_DISK_BYTES = 1 << 20  # less than this is no room for a commit
SENTENCE_MAX = 300
_SLICE = re.compile(r"slice (\d+)")


def problem_of(failure: BaseException | None, reported: Exception | None, left: Evidence | None, tables: Path) -> str:
    """``failure`` is what this process raised itself, ``reported`` what Spark says, ``left`` what a worker left behind.

    Our own error first, then a full disk, then what failed in this process, then in a worker, then Spark's first line.
    """
    if isinstance(failure, TidegateError):
        return str(failure)
    if _is_disk_full(failure, reported, left, tables):
        return f"The disk of {tables} is full: free some space; the readings wait in the log meanwhile."
    is_spark_s = failure is None or isinstance(failure, PySparkException | Py4JError)
    if is_spark_s and left is not None:
        return left.sentence
    lines = [line.strip() for line in f"{failure}\n{reported}".splitlines()]
    told = [line for line in lines if line not in ("", "None")]
    return told[0][:SENTENCE_MAX] if told else "Spark ended it without a word."


def doubted_in(left: Iterable[Evidence]) -> dict[int, int]:
    """Per slice the message that readers did not get. Only a hint: the next query finds out whether it is there."""
    found = ((_SLICE.fullmatch(one.where), one.expected) for one in left)
    return {int(slice_[1]): int(expected) for slice_, expected in found if slice_ and expected.isdecimal()}


def _is_disk_full(
    failure: BaseException | None, reported: Exception | None, left: Evidence | None, tables: Path
) -> bool:
    """By the number of the error where there is one, else by looking at the disk: Delta's errors have no number."""
    numbers = {one.errno for one in (failure, reported) if isinstance(one, OSError)} | {left.errno if left else None}
    if errno.ENOSPC in numbers:
        return True
    try:
        disk = os.statvfs(tables)
        return disk.f_bavail * disk.f_frsize < FULL_DISK_BYTES or (disk.f_files > 0 and disk.f_favail == 0)
    except OSError:  # the tables are gone, which is another problem
        return False
