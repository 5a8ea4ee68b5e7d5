"""Files of a table that are missing or cannot be read: set aside by name, so that one of them does not stop all work.

What is read goes on without them, and a sentence names them until they are restored or taken out of the table. Only a
file that fails by itself is set aside, and only a few of a table: where many fail, a disk is not there, and to go on
without history would be worse than to stop. Nothing is removed here.
"""

import errno
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidegate.model.errors import TidegateError

# Of one table; and never more than half of its files.
SET_ASIDE_MAX = 8
# What a damaged file raises. Whether it is the file's fault is found out by reading that file alone.
UNREADABLE = (OSError, ValueError, NotImplementedError)
# An error with another number (no rights, too many open files) is none of the file. Damaged content has no number.
_OF_THE_FILE = {None, errno.ENOENT, errno.EIO, errno.EBADMSG, errno.EUCLEAN}
_ROWS = 1024  # rows may be large
_FOLLOW_S = 10.0

T = TypeVar("T")


class Stamp(NamedTuple):
    """A file that was written anew or restored has another one."""

    inode: int
    modified_ns: int
    size: int


class Damage(NamedTuple):
    """What is wrong with a file, and what it looked like then."""

    what: str
    stamp: Stamp | None


def open_file(path: Path | str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A data file, its pages compared with the checksums that they were written with."""
    return pq.ParquetFile(path, metadata=metadata, page_checksum_verification=True)


def dataset(paths: list[str], schema: pa.Schema) -> ds.Dataset:
    """The same for several files at once."""
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    checked = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return ds.dataset(paths, schema=schema, format=checked, partitioning=None)


def fault_of(path: Path) -> str | None:
    """What is wrong with a data file, after reading all of it; None where it is whole."""
    try:
        with open_file(path) as file:
            for _ in file.iter_batches(_ROWS, use_threads=False):
                pass
    except FileNotFoundError:
        return "is missing"
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno not in _OF_THE_FILE:
            raise
        return f"cannot be read ({(str(error).splitlines() or [type(error).__name__])[0][:120]})"
    return None


class SetAside:
    """The damaged files of one table, as far as its user came across them. Paths are relative to the table."""

    def __init__(self, table: str, directory: Path, active: Callable[[], set[str]]) -> None:
        """``active`` tells the files of the table's newest version."""
        self._table, self._directory, self._active = table, directory, active
        self._damaged: dict[str, Damage] = {}
        self._followed_s = 0.0

    def __contains__(self, path: str) -> bool:
        return path in self._damaged

    @property
    def found(self) -> dict[str, str]:
        """What is wrong, by path."""
        return {path: damage.what for path, damage in sorted(self._damaged.items())}

    def read(self, paths: Iterable[str], read: Callable[[list[str]], T]) -> T:
        """``read`` of these files (it gets whole paths), without those that are damaged.

        Raises what ``read`` raises where no single file is to blame, and TidegateError where too many are.
        """
        self._forget_restored()
        wanted = [path for path in paths if path not in self._damaged]
        try:
            return read(self._whole_paths(wanted))
        except UNREADABLE:
            if not self.examine(path for path in wanted if _fails(read, self._whole_paths([path]))):
                raise
        return read(self._whole_paths(path for path in wanted if path not in self._damaged))

    def examine(self, suspects: Iterable[str]) -> bool:
        """Read files whole, and set aside those that are damaged; whether there are any."""
        active = self._active()
        found: dict[str, str] = {}
        for path in suspects:
            # One that is not active was replaced meanwhile: whoever tries again need not read it.
            what = fault_of(self._directory / path) if path in active else None
            if what is not None:
                found[path] = what
                self._check_number(found, len(active))
        self._set_aside(found)
        return bool(found)

    def look(self, sizes: Mapping[str, int]) -> None:
        """Compare all active files with the sizes that the log knows: finds what is missing or cut."""
        self._keep(set(sizes))
        self._forget_restored()
        stamps = {path: self._stamp(path) for path in sizes if path not in self._damaged}
        self.examine(path for path, stamp in stamps.items() if stamp is None or stamp.size != sizes[path])

    def follow(self) -> None:
        """Forget, now and then, what was restored or is no longer in the table."""
        if self._damaged and time.monotonic() >= self._followed_s + _FOLLOW_S:
            self._followed_s = time.monotonic()
            self._keep(self._active())
            self._forget_restored()

    @property
    def sentence(self) -> str | None:
        """For an alarm; None while nothing is set aside."""
        if not self._damaged:
            return None
        path, what = next(iter(self.found.items()))
        others = len(self._damaged) - 1
        more = f", and so are {others} more ('tidegate table check' names them)" if others else ""
        return (
            f"The file {path} of the table {self._table} {what}{more}: the work goes on without it, and a reading in "
            "it that is sent again would be stored again. Restore it from a copy, or take it out of the table with "
            f"'tidegate table check --table {self._table} --remove {path}'."
        )

    def _set_aside(self, found: Mapping[str, str]) -> None:
        self._damaged |= {path: Damage(what, self._stamp(path)) for path, what in found.items()}

    def _check_number(self, found: Mapping[str, str], active: int) -> None:
        damaged = len(self._damaged) + len(found)
        if damaged > max(1, min(SET_ASIDE_MAX, active // 2)):
            path, what = next(iter(found.items()))
            raise TidegateError(
                f"{damaged} or more of the {active} files of the table {self._table} cannot be read (the file "
                f"{self._directory / path} {what}), too many to go on without them: check that the disk is there and "
                "whole, or restore the table from a copy."
            )

    def _keep(self, active: set[str]) -> None:
        self._damaged = {path: damage for path, damage in self._damaged.items() if path in active}

    def _forget_restored(self) -> None:
        self._damaged = {path: damage for path, damage in self._damaged.items() if self._stamp(path) == damage.stamp}

    def _stamp(self, path: str) -> Stamp | None:
        try:
            found = (self._directory / path).stat()
        except OSError:
            return None
        return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)

    def _whole_paths(self, paths: Iterable[str]) -> list[str]:
        return [str(self._directory / path) for path in paths]


def _fails(read: Callable[[list[str]], object], paths: list[str]) -> bool:
    try:
        read(paths)
    except UNREADABLE:
        return True
    return False
