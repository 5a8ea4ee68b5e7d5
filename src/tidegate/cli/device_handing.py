"""Passwords on their way to a person: into a file, as JSON, or one of them on the screen."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer

from tidegate.bus.issued import Issued, check_place, save_issued
from tidegate.model.device_words import counted
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate.report.pasting import reading_line


def check_out(names: Sequence[str], out: Path | None, force: bool, as_json: bool) -> None:
    if out is not None:
        check_place(out, force=force)
    elif len(names) > 1 and not as_json:
        raise UserError(f"Where shall the passwords of {len(names):,} devices go? Name a file with --out.")


def hand_out(rows: Sequence[Issued], out: Path | None, as_json: bool, installation: Installation, done: str) -> None:
    if out is not None:
        save_issued(out, rows)
    tell(rows, out, as_json, installation, done)


def tell(rows: Sequence[Issued], out: Path | None, as_json: bool, installation: Installation, done: str) -> None:
    """What has become of them, and the passwords unless a file has them."""
    if as_json:
        shown = {"devices": [{"name": one.name} for one in rows] if out is not None else rows}
        typer.echo(msgspec.json.encode(shown | {"out": None if out is None else str(out)}))
    elif out is not None:
        typer.echo(f"{counted([one.name for one in rows])} {done}: {out}, readable by you only, has the passwords.")
    else:
        _print_one(rows[0], installation, done)


def _print_one(one: Issued, installation: Installation, done: str) -> None:
    address = installation.device_addresses[0]
    typer.echo(f"{one.name} is {done}: MQTT at {address[0]}:{address[1]}, topic telemetry/{one.name}.")
    typer.echo(f"user: {one.user}\npassword: {one.password}")
    typer.echo(f"A first reading: {reading_line(address, one.user, one.password, one.name)}")
