"""``tidegate ledger``: proves that what devices were promised is in the tables, once."""

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tidegate.bus.installation import load_installation
from tidegate.cli import ledger_watch
from tidegate.cli.options import STATE, AsJson, State
from tidegate.model.errors import UserError
from tidegate.report.checks import Check, Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.streams import everything_else_to_stderr

if TYPE_CHECKING:
    from tidegate.pipeline.tables.ledger import LedgerVerdict

ACKS = "acks"

app = typer.Typer(no_args_is_help=True)


@app.callback()
def ledger() -> None:
    """Nothing lost, nothing twice: acknowledgements against tables.

    \b
    Example:
      tidegate ledger check
      tidegate ledger watch
    """


@app.command()
def check(
    state: State = STATE,
    acks: Annotated[
        Path | None, typer.Option(help="Directory of the acknowledgement files.", show_default="<state>/acks")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare every acknowledged reading with the table of readings.

    Exit status 0: nothing is lost and nothing is stored twice. 1: something is. 2: there is nothing to
    compare.

    \b
    Examples:
      tidegate ledger check
      tidegate ledger check --state /srv/tidegate --acks /srv/acks --json
    """
    started_s = time.monotonic()
    directory = acks if acks is not None else state / ACKS
    if not directory.is_dir():
        raise UserError(f"No directory {directory}: name the directory of the acknowledgement files with --acks.")
    with everything_else_to_stderr(), Progress("ledger") as progress:
        verdict = _compare(Path(load_installation(state).tables), directory, progress)
    report = report_of(verdict, time.monotonic() - started_s)
    print_report(report, as_json=as_json)
    raise typer.Exit(report.exit_status)


@app.command()
def watch(
    state: State = STATE,
    once: Annotated[bool, typer.Option("--once", help="One verdict on all that is reported by now, then end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch whether the tables have every reading that gateways acknowledged; Ctrl-C ends it.

    With --once, exit status 0: the tables have everything that gateways have reported so far. 1: something is
    missing, or it could not be decided within 90 s.

    \b
    Examples:
      tidegate ledger watch
      tidegate ledger watch --once --json
    """
    installation = load_installation(state)
    if once:
        raise typer.Exit(ledger_watch.once(installation, as_json=as_json))
    with contextlib.suppress(KeyboardInterrupt):
        ledger_watch.watch(installation, as_json=as_json)


def _compare(tables: Path, acks: Path, progress: Progress) -> "LedgerVerdict":
    # Loaded here, because the other commands should not wait for it.
    from tidegate.devices.acknowledgements import read_directory  # noqa: PLC0415
    from tidegate.pipeline.tables import ledger as comparison  # noqa: PLC0415

    progress.update(f"reading acknowledgements in {acks}")
    acknowledged = read_directory(acks)
    progress.update(f"reading the table in {tables}")
    stored = comparison.read_identities(tables)
    progress.update(f"comparing {acknowledged.num_rows:,} acknowledgements with {stored.num_rows:,} rows")
    return comparison.check(acknowledged, stored)


def report_of(verdict: "LedgerVerdict", seconds: float) -> Report:
    """The verdict in the form that every command prints."""
    checks = [Check.equal("lost", verdict.lost, 0), Check.equal("duplicated", verdict.duplicated, 0)]
    row = {name: value for name, value in msgspec.to_builtins(verdict).items() if value != []}
    return Report("ledger check", [row], checks, round(seconds, 3))
