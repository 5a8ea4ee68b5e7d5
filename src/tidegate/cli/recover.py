"""``tidegate recover``: what a log that was set back or deleted from has cost, and closing that by a person's word."""

from typing import Annotated

import msgspec
import typer

from tidegate.bus.client import Bus
from tidegate.bus.documents import COMPLETENESS
from tidegate.bus.installation import load_installation
from tidegate.bus.noted_gaps import NotedGaps
from tidegate.cli.options import STATE, AsJson, State
from tidegate.cli.readable import readable
from tidegate.model.errors import UserError
from tidegate.model.gaps import Gaps
from tidegate.model.ledger import Hole


def recover(
    state: State = STATE,
    close: Annotated[
        list[int] | None, typer.Option(help="Close the gaps of this slice: they have been looked at. Repeatable.")
    ] = None,
    close_all: Annotated[bool, typer.Option("--close-all", help="Close every gap.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where the brokers' log is not what the tables have read; close what has been looked at.

    Reading has gone on by itself: nothing that was acknowledged since is skipped. A gap stays open, and raises an
    alarm, until a person closes it. Below each gap stands what the ledger has found missing in its slice since: what
    was acknowledged and is in no table. Exit status 1 while gaps are open, or the document that names them is damaged.

    \b
    Examples:
      tidegate recover
      tidegate recover --close 3
      tidegate recover --close-all
    """
    with Bus(load_installation(state).control_urls) as bus:
        noted = NotedGaps(bus)
        gaps, damaged = noted.read()
        checked = readable(bus, COMPLETENESS)
        closed = frozenset(gap.slice for gap in gaps.open) if close_all else frozenset(close or ())
        unknown = closed - {gap.slice for gap in gaps.open}
        if unknown and damaged is None:
            raise UserError(f"Slice {min(unknown)} has no open gap: 'tidegate recover' lists the slices that have one.")
        if closed or (close_all and damaged is not None):
            replaced = noted.close(closed)
            if replaced is not None:
                typer.echo(replaced, err=True)
            gaps, damaged = noted.read()
    missing = {gap.slice: _missing(gap.slice, checked.holes if checked is not None else ()) for gap in gaps.open}
    if as_json:
        found = {"open": gaps.open, "closed_slices": sorted(closed), "missing": missing, "damaged": damaged}
        typer.echo(msgspec.json.encode(found).decode())
    else:
        _say(gaps, closed, missing, damaged, is_checked=checked is not None)
    raise typer.Exit(1 if gaps.open or damaged is not None else 0)


def _missing(slice_: int, holes: tuple[Hole, ...]) -> list[Hole]:
    return [hole for hole in holes if hole.slice == slice_]


def _say(
    gaps: Gaps, closed: frozenset[int], missing: dict[int, list[Hole]], damaged: str | None, *, is_checked: bool
) -> None:
    if closed:
        typer.echo(f"Closed: slice {', '.join(map(str, sorted(closed)))}.")
    for gap in gaps.open:
        typer.echo(gap.sentence)
        for hole in missing[gap.slice]:
            typer.echo(f"  missing: {hole.sentence}")
        if not missing[gap.slice] and is_checked:
            typer.echo("  The ledger knows of no reading that is missing ('tidegate ledger watch' says how far it is).")
    if damaged is not None:
        typer.echo(damaged)
    elif gaps.open:
        typer.echo("Close what you have looked at with 'tidegate recover --close SLICE'.")
    else:
        typer.echo("No gap is open: every slice's log is the one that the tables have read.")
