"""Rotating passwords of devices, and the key of the installation."""

import time
from collections.abc import Sequence
from pathlib import Path

import typer

from tidegate.bus import identity, register, rotating
from tidegate.bus.client import Bus
from tidegate.bus.issued import issued, save_issued
from tidegate.cli.device_handing import tell
from tidegate.model.credentials import Keys
from tidegate.model.device_words import counted
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.report.progress import Progress

_NAMED_MAX = 10


def rotate_devices(
    bus: Bus,
    keys: Keys,
    installation: Installation,
    names: Sequence[str],
    *,
    state: Path,
    grace_s: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Passwords are written before the bus is changed: what cannot be handed out must not end what devices have."""
    now_s = time.time()
    entries = register.entries(bus, names)
    revoked = [name for name, entry in entries.items() if entry.is_revoked]
    if revoked:
        raise UserError(f"{counted(revoked)} revoked: 'tidegate device add' gives a new password.")
    generations = rotating.decide(state, entries, now_s, grace_s)
    rows = [issued(keys.current, name, generation) for name, generation in generations.items()]
    if out is not None:
        save_issued(out, rows)
    with Progress("rotating") as progress:
        found = register.raise_generations(
            bus, generations, now_s, grace_s, lambda done, all_: progress.update(f"{done:,} of {all_:,}")
        )
    identity.copy_revoked(bus, state)
    taken = [row for row in rows if not found[row.name].is_revoked]
    if taken:
        tell(taken, out, as_json, installation, "rotated")
    rotating.finish(state, names)
    _tell_of_revoked([name for name, entry in found.items() if entry.is_revoked])


def _tell_of_revoked(names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
        raise TidegateError(
            f"Revoked meanwhile, and still so: {', '.join(names[:_NAMED_MAX])}{more}. What was issued for them now is "
            "refused; 'tidegate device add' gives a new password."
        )


def rotate_key(bus: Bus, state: Path, *, finish: bool) -> None:
    if finish:
        keys = identity.finish_key_rotation(bus, state)
        typer.echo(f"Only passwords of key {keys.current.id} count from now on; others are disconnected.")
        return
    keys = identity.rotate_key(bus, state)
    previous = keys.previous.id if keys.previous is not None else "none"
    typer.echo(
        f"New passwords are made with key {keys.current.id}; those of key {previous} count until it is finished.\n"
        "Make them with 'tidegate device add --from NAMES --out FILE', give them to the devices, then finish with\n"
        "'tidegate device rotate --installation-key --finish'."
    )
