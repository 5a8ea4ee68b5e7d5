"""Which devices a command is about: named, in a file, or numbered."""

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidegate.bus.issued import COLUMNS
from tidegate.model.credentials import SCHEME
from tidegate.model.devices import DEVICE_BYTES_MAX, check_device, numbered
from tidegate.model.errors import UserError

NAMES_MAX = 10_000_000
_PASSWORD = f"{SCHEME}."
# The name and the user of a device are the same; or the columns' own names, whatever is between them.
_ROW = re.compile(r'"?(?:(.+?)"?[,;|\t]"?\1|name"?[,;|\t]"?user)"?[,;|\t]', re.IGNORECASE)
_ROW_MAX = 2 * DEVICE_BYTES_MAX + 16

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Devices or applications.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE", help="A name per line, or what --out wrote; - is standard input."),
]
Count = Annotated[int | None, typer.Option(min=1, max=NAMES_MAX, help="So many names: <prefix>-000000 and so on.")]
Prefix = Annotated[str | None, typer.Option(help="How numbered names begin, with --count.")]


def named(
    names: Sequence[str] | None, file: str | None = None, count: int | None = None, prefix: str | None = None
) -> list[str]:
    """All of them, each once, in their order; every name is one that a device may have."""
    if (count is None) != (prefix is None):
        raise UserError("--count and --prefix belong together: '--count 1000 --prefix pump'.")
    found = list(names or ())
    for name in found:
        check_device(name)
    if file is not None:
        found += _in_file(file)
    if count is not None and prefix is not None:
        check_device(numbered(prefix, count))
        found += [numbered(prefix, number) for number in range(count)]
    if not found:
        raise UserError("Which devices? Name them, or a file of names with --from, or --count and --prefix.")
    return list(dict.fromkeys(found))


def _in_file(file: str) -> list[str]:
    where = "standard input" if file == "-" else file
    found = []
    for number, name in _lines(file, where):
        try:
            check_device(name)
        except UserError as error:
            raise UserError(f"{where}, line {number}: {error}") from None
        found.append(name)
    return found


def _lines(file: str, where: str) -> Iterator[tuple[int, str]]:
    """Names with the numbers of their lines; of a file that --out has written, its first column."""
    text = _text(file)
    if _columns(text.partition("\n")[0].strip("\r")) == COLUMNS:
        yield from _first_column(text, where)
        return
    for number, line in enumerate(text.split("\n"), 1):
        name = line.strip(" \t\r")
        if not name or name.startswith("#"):
            continue
        # A spreadsheet has saved it anew. A password is no part of a name, nor of a message.
        if _PASSWORD in name or _ROW.match(name[:_ROW_MAX]):
            raise UserError(
                f"{where}, line {number} looks like a row with a password, and not like a name: give a name per line, "
                f"or a file that begins with {','.join(COLUMNS)} and has commas."
            )
        yield number, name


def _first_column(text: str, where: str) -> Iterator[tuple[int, str]]:
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in rows:
            if row and len(row) != len(COLUMNS):
                raise csv.Error(f"it has {len(row)} columns")
            if row and rows.line_num > 1:
                yield rows.line_num, row[0]
    except csv.Error as error:
        raise UserError(
            f"{where}, line {rows.line_num} is no row of {','.join(COLUMNS)} ({error}): name a file as --out wrote it."
        ) from None


def _columns(line: str) -> tuple[str, ...]:
    try:
        return tuple(next(csv.reader([line]), ()))
    except csv.Error:
        return ()


def _text(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8-sig")  # spreadsheets begin with a mark
    except FileNotFoundError:
        raise UserError(f"--from {file} does not exist: name a file with a name per line.") from None
    except OSError as error:
        raise UserError(f"--from {file} cannot be read ({error.strerror}): name a readable file.") from None
    except UnicodeDecodeError:
        raise UserError(f"--from {file} is no text in UTF-8: save it as that.") from None
