"""``tidegate jobs``: which other jobs read the slices, and forgetting one that is gone for good."""

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tidegate.bus.client import Bus
from tidegate.bus.documents import JOBS
from tidegate.bus.installation import load_installation
from tidegate.bus.key_value import Entry
from tidegate.cli.options import STATE, AsJson, State
from tidegate.model.errors import DamagedDocumentError, UserError


def jobs(
    forget: Annotated[str | None, typer.Option(metavar="JOB", help="Delete what this job wrote down.")] = None,
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """Show the jobs of your own that read the slices, and how far they are; nodes keep in the log what they need.

    \b
    Examples:
      tidegate jobs
      tidegate jobs --forget nightly
    """
    with Bus(load_installation(state).control_urls) as bus:
        found = {name: entry for name in bus.names(JOBS) if (entry := bus.entry(JOBS, name)) is not None}
        if forget is not None:
            if forget not in found:
                raise UserError(f"There is no job {forget}: there are {', '.join(found) or 'none'}.")
            bus.delete(JOBS, forget)
            typer.echo(f"The job {forget} is forgotten: it no longer keeps readings in the log.")
            return
    shown = {name: _described(name, entry) for name, entry in found.items()}
    if as_json:
        typer.echo(json.dumps(shown))
        return
    table = Table("job", "last word", "committed offset of each slice", box=None)
    for name, one in shown.items():
        table.add_row(name, f"{one['silent_s']:.0f} s ago", one["problem"] or json.dumps(one["committed"]))
    Console().print(table if shown else "No other job reads the slices.")


def _described(name: str, entry: Entry) -> dict[str, Any]:
    """``silent_s`` is by this machine's clock and the bus's: good enough to look at."""
    silent_s = max(0.0, time.time() - entry.written_s)
    try:
        return {"silent_s": silent_s, "committed": JOBS.decode(entry.value, name), "problem": None}
    except DamagedDocumentError as error:
        return {"silent_s": silent_s, "committed": None, "problem": str(error)}
