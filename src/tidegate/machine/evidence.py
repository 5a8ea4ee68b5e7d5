"""Errors that happen in the processes Spark starts, told to the process that started Spark.

Spark passes an exception on as the text of a traceback. What went wrong is not looked for in that: the process where it
happens leaves the error as a value in a directory of the query's, and the node reads it there. Workers on other
machines cannot leave it; then what Spark says is all there is.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tidegate.model.errors import TidegateError

_SUFFIX = ".error"
_TOLD = "told"
# Only the first error counts. Some more are for a person who looks; a query that fails all day must not fill a disk.
ERRORS_MAX = 16


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """An error of Tidegate's own, or one of the operating system's with its number."""

    sentence: str
    where: str = ""
    expected: str = ""
    found: str = ""
    errno: int | None = None


@contextlib.contextmanager
def left_in(directory: str | Path | None) -> Iterator[None]:
    """Whatever is raised inside is left in the directory as well, where there is one."""
    try:
        yield
    except (TidegateError, OSError) as error:
        if directory is not None:
            with contextlib.suppress(OSError):  # a full disk must not hide the error that it caused
                _leave(Path(directory), error)
        raise


def _leave(directory: Path, error: TidegateError | OSError) -> None:
    if sum(1 for _ in directory.glob(f"*{_SUFFIX}")) >= ERRORS_MAX:
        return
    if isinstance(error, TidegateError):
        left = Evidence(sentence=str(error), where=error.where, expected=str(error.expected), found=str(error.found))
    else:
        sentence = str(error) or type(error).__name__
        left = Evidence(sentence=sentence, where=str(error.filename or ""), errno=error.errno)
    # The time first: names sort as the errors came. The process, because two may fail at once.
    (directory / f"{time.time_ns()}-{os.getpid()}{_SUFFIX}").write_bytes(msgspec.json.encode(left))


def all_in(directory: Path) -> list[Evidence]:
    """Every error that was left there and can be read, oldest first."""
    found = []
    for file in sorted(directory.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(msgspec.json.decode(file.read_bytes(), type=Evidence))
    return found


def found_in(directory: Path) -> Evidence | None:
    """The first error that was left there; those behind it may be its consequences."""
    return next(iter(all_in(directory)), None)


def tell(directory: Path, sentences: Sequence[str]) -> None:
    """Say what does not work at the moment though nothing has ended; nothing, when it works again."""
    if list(sentences) == told_in(directory):
        return
    with contextlib.suppress(OSError):
        fresh = directory / f"{_TOLD}.new"
        fresh.write_bytes(msgspec.json.encode(list(sentences)))
        fresh.replace(directory / _TOLD)


def told_in(directory: Path) -> list[str]:
    try:
        return msgspec.json.decode((directory / _TOLD).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        return []
