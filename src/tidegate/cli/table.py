"""``tidegate table``: how the tables are, and what the maintainer does, by hand."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from tidegate.bus.client import Bus
from tidegate.bus.documents import MAINTAINER, TABLES
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, Config, State
from tidegate.cli.readable import readable
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.model.tables import TableHealth
from tidegate.report.checks import Check, Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.streams import everything_else_to_stderr
from tidegate.settings.tree import Settings, load

if TYPE_CHECKING:
    from tidegate.pipeline.maintenance.care import Care

TURN_S_MAX = 90.0  # a maintainer's turn lasts a minute per table at most, and mostly a moment


class Name(StrEnum):
    """The tables there are."""

    READINGS = "readings"
    MEANS = "means"
    REJECTED = "rejected"


Only = Annotated[Name | None, typer.Option("--table", help="Only this table.", show_default="all")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
TrustClock = Annotated[bool, typer.Option("--trust-clock", help="Though it is far ahead of the tables' newest day.")]
Row = dict[str, Any]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def table() -> None:
    """Files, log and days of the tables. A running maintainer does all of this by itself.

    \b
    Examples:
      tidegate table status
      tidegate table compact --dry-run
    """


@app.command()
def status(state: State = STATE, config: Config = None, only: Only = None, as_json: AsJson = False) -> None:
    """Say how many files, log entries and rows each table has, and when it was looked after.

    Exit status 1: a table has more files or log entries than the settings allow, or files that are missing or cut.

    \b
    Examples:
      tidegate table status
      tidegate table status --table readings --json
    """
    started_s = time.monotonic()
    installation, settings = load_installation(state), load(config)
    with everything_else_to_stderr(), Progress("table status") as progress:
        rows, checks = [], []
        with Bus(installation.control_urls) as bus:
            said, holder = readable(bus, TABLES), readable(bus, MAINTAINER)
        for care in _cares(installation, settings, only, lambda: None):
            progress.update(f"looking at {care.table.name}")
            health = care.health()
            rows.append({"table": care.table.name, **msgspec.to_builtins(health)})
            checks += _checks(care.table.name, health, settings)
            last = [run for run in said.runs if run.table == care.table.name] if said is not None else []
            rows[-1] |= {
                "last_maintenance_s_ago": round(time.time() - last[-1].at_s, 1) if last else None,
                "problem": last[-1].problem if last else None,
                "working_now": holder.name if holder is not None else None,
            }
    _print(Report("table status", rows, checks, round(time.monotonic() - started_s, 3)), as_json=as_json)


def _checks(name: str, health: TableHealth, settings: Settings) -> list[Check]:
    most = settings.maintenance
    return [
        Check.at_most(f"{name} active_files", health.active_files, most.active_files_max),
        Check.at_most(f"{name} log_entries", health.log_entries, most.log_entries_max),
        Check.at_most(f"{name} damaged_files", health.damaged_files, 0),
    ]


@app.command()
def check(
    state: State = STATE,
    config: Config = None,
    only: Only = None,
    remove: Annotated[
        str | None, typer.Option(help="Take this damaged file out of the table; its rest is kept in '_damaged'.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read every file of the tables whole, and name those that are missing or cannot be read.

    Restore such a file from a copy, under its name. Where there is none, take it out of the table: a part that came
    across it goes on without it, and its alarm ends then. Exit status 1: a table has damaged files.

    \b
    Examples:
      tidegate table check
      tidegate table check --table readings --remove date=2026-01-31/part-0a1b.parquet
    """
    if remove is not None and only is None:
        raise UserError("Say with --table which table the file is to be taken out of.")

    def look(care: "Care") -> Row:
        found = [f"{path} {what}" for path, what in care.damaged().items()]
        return {"files": len(care.table.files()), "damaged_files": len(found), "damaged": found}

    def act(care: "Care", _: Callable[[str], None]) -> Row:
        care.remove_damaged(str(remove))
        return look(care)

    _command("table check", state, config, only, plan=look if remove is None else None, act=act, as_json=as_json)


@app.command()
def compact(
    state: State = STATE, config: Config = None, only: Only = None, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Shorten the log and merge small files, as long as there is anything to merge. Nodes go on writing meanwhile.

    \b
    Examples:
      tidegate table compact --dry-run
      tidegate table compact --table readings
    """

    def plan(care: "Care") -> Row:
        merges = care.planned()
        files = [file for merge in merges for file in merge]
        return {
            "next_merges": len(merges),
            "files": len(files),
            "bytes": sum(file.size for file in files),
            "date": str(files[0].date) if files else "",
        }

    def act(care: "Care", say: Callable[[str], None]) -> Row:
        before = care.health()
        care.shorten_log()
        while care.compact():
            say(f"{care.table.name}: {care.done.files_merged:,} files have become {care.done.files_written:,}")
        after = care.health()
        return {
            "files_before": before.active_files,
            "files": after.active_files,
            "log_entries_before": before.log_entries,
            "log_entries": after.log_entries,
        }

    _command("table compact", state, config, only, plan=plan if dry_run else None, act=act, as_json=as_json)


@app.command()
def vacuum(
    state: State = STATE, config: Config = None, only: Only = None, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Remove files that no table knows, and files that were replaced, once they are old enough for nobody to need them.

    \b
    Examples:
      tidegate table vacuum --dry-run
      tidegate table vacuum --json
    """
    from tidegate.pipeline.maintenance.vacuum import removable  # noqa: PLC0415 - slow to import

    def plan(care: "Care") -> Row:
        return {"removable_files": len(removable(care.table, care.settings.vacuum_after_h))}

    def act(care: "Care", _: Callable[[str], None]) -> Row:
        care.vacuum()
        return {"removed_files": care.done.files_removed}

    _command("table vacuum", state, config, only, plan=plan if dry_run else None, act=act, as_json=as_json)


@app.command()
def retain(
    state: State = STATE,
    config: Config = None,
    only: Only = None,
    dry_run: DryRun = False,
    *,
    trust_clock: TrustClock = False,
    as_json: AsJson = False,
) -> None:
    """Drop the days that the settings no longer keep ([maintenance] readings_days, means_days, rejected_days).

    \b
    Examples:
      TIDEGATE_MAINTENANCE__READINGS_DAYS=60 tidegate table retain --table readings --dry-run
      tidegate table retain --config tidegate.toml
    """

    def plan(care: "Care") -> Row:
        files = care.to_drop()
        days = sorted({str(file.date) for file in files})
        told = {"dates": len(days), "first": days[0] if days else "", "last": days[-1] if days else ""}
        kept = {"kept_days": care.settings.days[care.table.name] or "all", "clock_problem": care.clock_problem()}
        return {**kept, **told, "rows": sum(file.rows for file in files)}

    def act(care: "Care", _: Callable[[str], None]) -> Row:
        told = plan(care)
        if not trust_clock:
            care.check_clock()
        care.retain()
        return told

    _command("table retain", state, config, only, plan=plan if dry_run else None, act=act, as_json=as_json)


def _command(
    name: str,
    state: Path,
    config: Path | None,
    only: Name | None,
    *,
    plan: "Callable[[Care], Row] | None",
    act: "Callable[[Care, Callable[[str], None]], Row]",
    as_json: bool,
) -> None:
    """Look at each table, or work on it in our turn."""
    from tidegate.pipeline.maintenance.settings import check_retention  # noqa: PLC0415 - slow to import

    started_s = time.monotonic()
    installation, settings = load_installation(state), load(config)
    check_retention(settings.maintenance, settings.node.identity_horizon_days)
    with everything_else_to_stderr(), Progress(name) as progress:
        if plan is not None:
            rows = [
                {"table": care.table.name, **plan(care)} for care in _cares(installation, settings, only, lambda: None)
            ]
        else:
            with _turn(installation, settings, progress) as keep:
                rows = []
                for care in _cares(installation, settings, only, keep):
                    progress.update(f"working on {care.table.name}")
                    rows.append({"table": care.table.name, **act(care, progress.update)})
    checks = [Check.at_most(f"{it['table']} damaged_files", it["damaged_files"], 0) for it in rows if "damaged" in it]
    _print(Report(name, rows, checks, round(time.monotonic() - started_s, 3)), as_json=as_json)


@contextmanager
def _turn(installation: Installation, settings: Settings, progress: Progress) -> Iterator[Callable[[], None]]:
    """Our turn to work on the tables, after that of whoever has it now; yields what keeps it."""
    from tidegate.pipeline.maintenance.turn import Turn  # noqa: PLC0415 - slow to import

    with Bus(installation.control_urls, name="tidegate-table") as bus:
        turn = Turn(bus, "operator", settings.maintenance.lease_s)
        deadline_s = time.monotonic() + TURN_S_MAX
        while not turn.take():
            progress.update(f"waiting for {turn.holder}, who is working on the tables")
            if time.monotonic() > deadline_s:
                raise TidegateError(
                    f"{turn.holder} has been working on the tables for {TURN_S_MAX:.0f} s: try again later, or stop it."
                )
            time.sleep(0.2)
        try:
            yield turn.keep
        finally:
            turn.end()


def _cares(
    installation: Installation, settings: Settings, only: Name | None, between: Callable[[], None]
) -> "Iterator[Care]":
    """The tables that are there, each with what can be done to it; by hand nothing rests."""
    from tidegate.pipeline.maintenance.care import Care  # noqa: PLC0415 - slow to import
    from tidegate.pipeline.maintenance.pacing import Pace  # noqa: PLC0415
    from tidegate.pipeline.maintenance.table import MaintainedTable  # noqa: PLC0415

    directory, fsync = Path(installation.tables), settings.durable
    wanted = [only] if only is not None else list(Name)
    tables = [MaintainedTable(directory, name.value, fsync=fsync) for name in wanted]
    found = [table for table in tables if table.exists]
    if not found:
        what = f"no table {only}" if only is not None else "no tables"
        raise UserError(f"There are {what} in {directory} yet: a processing node makes them with its first batch.")
    for table_ in found:
        yield Care(table_, settings.maintenance, Pace(1.0, between), fsync)


def _print(report: Report, *, as_json: bool) -> None:
    print_report(report, as_json=as_json)
    raise typer.Exit(report.exit_status)
