"""Which devices a command is about: named, in a file, or numbered."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidegate.bus.issued import COLUMNS
from tidegate.model.devices import check_device, numbered
from tidegate.model.errors import UserError

NAMES_MAX = 10_000_000

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
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = content.decode().split("\n")
    except FileNotFoundError:
        raise UserError(f"--from {file} does not exist: name a file with a name per line.") from None
    except OSError as error:
        raise UserError(f"--from {file} cannot be read ({error.strerror}): name a readable file.") from None
    except UnicodeDecodeError:
        raise UserError(f"--from {file} is no text in UTF-8: save it as that.") from None
    if lines[0].strip() == ",".join(COLUMNS):  # a file that this command has written
        lines = ["", *(row[0] for row in csv.reader(lines[1:]) if row)]
    found = []
    for number, line in enumerate(lines, 1):
        name = line.strip(" \t\r")
        if name and not name.startswith("#"):
            try:
                check_device(name)
            except UserError as error:
                raise UserError(f"{where}, line {number}: {error}") from None
            found.append(name)
    return found
