"""What a device knows to be safe: the identities of the readings that a broker acknowledged.

An acknowledgement file is text, one record a line, appended and never changed::

    device TAB boot TAB seq LF

One publisher, or all publishers of a process, write one file; records of several devices stand in the order
in which they were acknowledged. A record counts only with its line feed: what a killed process left behind
it is torn, is ignored by readers, and is cut off by the next writer. The records reach the operating system
with each flush, so they outlive the process; they outlive the machine's power only as far as its page cache
does.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.model.errors import TidegateError, UserError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = ".acks"
_TAIL_BYTES = 4_096


class AckFile:
    """The writer. ``append`` collects, ``flush`` hands everything collected to the operating system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._collected: list[str] = []
        self._failure: TidegateError | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cut_torn_record()
        except BlockingIOError:
            os.close(self._descriptor)
            raise UserError(f"{path} is being written by another publisher: give each one a file of its own.") from None

    def append(self, device: str, boot: int, seq: int) -> None:
        self._collected.append(f"{device}\t{boot}\t{seq}\n")

    def flush(self) -> None:
        if self._failure is not None:
            # The file may end in a torn record: nothing may be appended behind it.
            raise self._failure
        if not self._collected:
            return
        data = memoryview("".join(self._collected).encode())
        self._collected.clear()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._failure = TidegateError(
                f"{self.path} cannot be written ({error.strerror}): what it lacks counts as not "
                "acknowledged. Make room and start the publisher again."
            )
            raise self._failure from error

    def close(self) -> None:
        if self._descriptor >= 0:
            try:
                if self._failure is None:
                    self.flush()
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> "AckFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut_torn_record(self) -> None:
        """Appending behind a torn record would join two records to a wrong one."""
        size = os.fstat(self._descriptor).st_size
        end = size
        while end:
            start = max(0, end - _TAIL_BYTES)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._descriptor, end)


def read_file(path: Path) -> "pa.Table":
    """All whole records of one file, in order: device (string), boot and seq (int64)."""
    import pyarrow as pa  # noqa: PLC0415 - a device that only publishes does not load it
    from pyarrow import csv  # noqa: PLC0415

    schema = pa.schema([("device", pa.string()), ("boot", pa.int64()), ("seq", pa.int64())])
    data = path.read_bytes()
    whole = memoryview(data)[: data.rfind(b"\n") + 1]
    if not whole:
        return schema.empty_table()
    try:
        return csv.read_csv(
            pa.py_buffer(whole),
            read_options=csv.ReadOptions(column_names=schema.names),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(column_types=schema, strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise TidegateError(f"{path} is not an acknowledgement file ({error}): name the right directory.") from None


def read_directory(directory: Path) -> "pa.Table":
    """All whole records of all files of a directory."""
    import pyarrow as pa  # noqa: PLC0415

    tables = [read_file(path) for path in files(directory)]
    if not tables:
        raise UserError(f"No acknowledgement files (*{SUFFIX}) in {directory}: name the directory of a fleet's --acks.")
    return pa.concat_tables(tables)


def files(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.rglob(f"*{SUFFIX}"))
