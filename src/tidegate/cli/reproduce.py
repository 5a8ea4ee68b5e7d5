"""``tidegate reproduce``: a source document's table or figure in the simulator, its figures beside ours."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.options import AsJson, make_directory
from tidegate.model.errors import UserError
from tidegate.report.checks import Check, Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.streams import everything_else_to_stderr
from tidegate.report.tables import show

# name -> module with run(progress, out, quick) -> Report; loaded only when asked for.
EXPERIMENTS = {
    "gotin-table1": "tidegate.experiments.gotin_table1",
    "gotin-fig5": "tidegate.experiments.gotin_fig5",
    "gotin-hard": "tidegate.experiments.gotin_hard",
    "gotin-tuning": "tidegate.experiments.tuning",
}
# Tuning makes the settings that the others report on; it reproduces nothing itself.
NOT_IN_ALL = ("gotin-tuning",)
ALL = "all"
# Rows that people read; the single runs behind them are for --json.
ROWS_SHOWN = 80
SPREAD, PUBLISHED = "_ci95", "_published"

Experiment = Callable[[Progress, Path | None, bool], Report]


def find(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UserError(f"There is no experiment {name!r}: choose one of {', '.join([*EXPERIMENTS, ALL])}.")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).run
    return experiment


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Which one: {', '.join([*EXPERIMENTS, ALL])}.")],
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds instead of ten: a first look.")] = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for plots, and for finished runs: a stopped experiment goes on where it was."),
    ] = None,
) -> None:
    """Reproduce a published table or figure; exit status 0 where every check holds, 1 where one does not.

    \b
    Examples:
      tidegate reproduce gotin-table1 --quick
      tidegate reproduce gotin-hard --json --out results/ > gotin-hard.json
      tidegate reproduce all --out results/
    """
    names = [one for one in EXPERIMENTS if one not in NOT_IN_ALL] if name == ALL else [name]
    experiments = {one: find(one) for one in names}
    make_directory(out)
    reports = []
    for one, experiment in experiments.items():
        with everything_else_to_stderr(), Progress(f"reproduce {one}") as progress:
            reports.append(experiment(progress, out, quick))
    report = reports[0] if len(reports) == 1 else _together(reports)
    print_report(report if as_json else _shortened(report), as_json=as_json)
    raise typer.Exit(report.exit_status)


def _together(reports: list[Report]) -> Report:
    """Several experiments as one report; each check says whose it is."""
    rows = [{"experiment": one.name, **row} for one in reports for row in one.rows]
    checks = [
        Check(f"{one.name}: {check.name}", check.value, check.bar, check.holds)
        for one in reports
        for check in one.checks
    ]
    return Report(ALL, rows, checks, round(sum(one.seconds for one in reports), 1))


def _shortened(report: Report) -> Report:
    """Without the single runs: those have a seed."""
    rows = [_merged(row) for row in report.rows if "seed" not in row]
    return Report(report.name, rows[:ROWS_SHOWN], report.checks, report.seconds)


def _merged(row: dict[str, Any]) -> dict[str, Any]:
    """A value, its spread and the published one in a cell: ``6,038 ± 57 (5,855)``."""
    found = {}
    for name, value in row.items():
        if name.endswith((SPREAD, PUBLISHED)):
            continue
        text = show(value)
        text += f" ± {show(row[name + SPREAD])}" if name + SPREAD in row else ""
        text += f" ({show(row[name + PUBLISHED])})" if name + PUBLISHED in row else ""
        found[name] = text
    return found
