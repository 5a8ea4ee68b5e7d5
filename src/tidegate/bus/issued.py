"""Passwords that were issued, for whoever puts them into devices: one file, readable by its owner only."""

import csv
import io
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import IDENTITY_KEYS
from tidegate.machine.private_files import write_private_file
from tidegate.model.credentials import Key, password_of
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation

COLUMNS = ("name", "user", "password")

# The user and the password of a device, by its name.
Credentials = Callable[[str], tuple[str, str]]


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


def credentials_of(installation: Installation) -> Credentials:
    """Who devices of this installation say they are: its gateways take derived passwords; where there are none, the
    brokers know one user alone."""
    if installation.gateway_mqtt is None:
        return lambda _: (installation.mqtt_user, installation.mqtt_password)
    with Bus(installation.control_urls) as bus:
        keys = bus.get(IDENTITY_KEYS)
    if keys is None:
        raise UserError("This installation has no keys for passwords yet: start it with 'tidegate up'.")
    key = keys.current
    return lambda name: (name, password_of(key, name, 1))


def read_issued(path: Path) -> Credentials:
    """Those of a file that was written here."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = {row["name"]: (row["user"], row["password"]) for row in csv.DictReader(file)}
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name what 'tidegate device add' wrote.") from None
    except (KeyError, UnicodeDecodeError, csv.Error):
        raise UserError(
            f"{path} has not the columns {', '.join(COLUMNS)}: name what 'tidegate device add' wrote."
        ) from None

    def of(name: str) -> tuple[str, str]:
        if name not in rows:
            raise UserError(f"{path} has no password for {name}: add it with 'tidegate device add {name}'.")
        return rows[name]

    return of


def check_place(path: Path, *, force: bool) -> None:
    """Before anything is issued, whether there will be a place for it."""
    try:
        kind = _kind(path)
    except OSError as error:
        raise UserError(f"--out {path} cannot be written ({error.strerror}): name another file.") from None
    if kind == stat.S_IFDIR or not path.parent.is_dir():
        raise UserError(f"--out {path} cannot be written: name a file in a directory that exists.")
    if kind not in (None, stat.S_IFREG):
        raise UserError(f"--out {path} is a device, a pipe or a link, and would be replaced: name a file of its own.")
    if kind is not None and not force:
        raise UserError(f"--out {path} exists: name another file, or overwrite it with --force.")


def _kind(path: Path) -> int | None:
    """Of what is there, without following it elsewhere."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


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
