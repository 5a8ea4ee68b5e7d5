"""Passwords that were issued, for whoever puts them into devices: one file, readable by its owner only."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.machine.private_files import write_private_file
from tidegate.model.credentials import Key, password_of
from tidegate.model.errors import UserError

COLUMNS = ("name", "user", "password")


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """What a device needs to connect."""

    name: str
    user: str
    password: str
    generation: int

    def __repr__(self) -> str:
        return f"Issued(name={self.name!r}, generation={self.generation})"


def issued(key: Key, name: str, generation: int) -> Issued:
    return Issued(name=name, user=name, password=password_of(key, name, generation), generation=generation)


def check_place(path: Path, *, force: bool) -> None:
    """Before anything is issued, whether there will be a place for it."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"--out {path} cannot be written: name a file in a directory that exists.")
    if path.exists() and not force:
        raise UserError(f"--out {path} exists: name another file, or overwrite it with --force.")


def save_issued(path: Path, rows: Iterable[Issued]) -> None:
    """Comma-separated, whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((row.name, row.user, row.password) for row in rows)
    try:
        write_private_file(path, text.getvalue().encode())
    except OSError as error:
        raise UserError(f"--out {path} cannot be written ({error.strerror}): name another file.") from None
