"""``tidegate simulate``: one scenario in virtual time, with every strategy that shall be tried in it."""

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tidegate.cli.options import AsJson, make_directory
from tidegate.report.checks import Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.streams import everything_else_to_stderr
from tidegate.report.tables import console_on, rows_table, show
from tidegate.sim import files
from tidegate.sim.files import ScenarioFile
from tidegate.sim.result import ClassResult, Result
from tidegate.sim.run import check, simulate
from tidegate.sim.scenario import Strategy

DEFAULT_STRATEGIES = (Strategy(policy="none"), Strategy(policy="adaptive"))
FIGURE_KEY = "Grey: demand, and the run without protection."
CAPTION = (
    "Delay is the time in the queue, age that of data when it is processed, interval the time between two messages of "
    "a device: means, like queue and nodes, where they do not say max."
)


def run(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (YAML); docs/scenarios.md has every key.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="Try this strategy of the file, registered policy or module:Class instead; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 1,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Directory for plots (PNG), a page (HTML) and all results.")] = None,
) -> None:
    """Run a scenario in virtual time and compare what policies make of it.

    \b
    Examples:
      tidegate simulate examples/scenarios/flood.yaml
      tidegate simulate examples/scenarios/flood.yaml --policy gotin --policy my_policy:MyPolicy
      tidegate simulate examples/scenarios/classes.yaml --seed 7 --out results/
      tidegate simulate examples/scenarios/external-cap.yaml --json > external-cap.json
    """
    began_s = time.monotonic()
    sys.path.insert(0, str(Path.cwd()))  # a policy of one's own lies here more often than in an installed package
    file = files.load(scenario)
    strategies = [_chosen(file, name) for name in policy] if policy else file.strategies or DEFAULT_STRATEGIES
    for strategy in strategies:  # a mistake in the last one is said before the first one runs
        check(file, strategy)
    make_directory(out)
    with everything_else_to_stderr(), Progress(f"simulate {file.name}") as progress:
        results = [_run_one(file, strategy, seed, progress) for strategy in strategies]
        if out is not None:
            progress.step("drawing")
            _save(out, file, results, _command(scenario, policy, seed))
    if as_json:
        rows = [result.row() for result in results]
        print_report(Report("simulate", rows, [], time.monotonic() - began_s), as_json=True)
    else:
        _print(file, results, out)


def _chosen(file: ScenarioFile, name: str) -> Strategy:
    """The file's own strategy of that name, or the policy with its defaults."""
    return next((strategy for strategy in file.strategies if strategy.title == name), Strategy(policy=name))


def _run_one(file: ScenarioFile, strategy: Strategy, seed: int, progress: Progress) -> Result:
    progress.step(strategy.title)
    return simulate(file, strategy, seed, lambda share: progress.update(f"{strategy.title}, {share:.0%}"))


def _command(scenario: Path, policy: Sequence[str] | None, seed: int) -> str:
    words = ["tidegate", "simulate", str(scenario), *(word for name in policy or () for word in ("--policy", name))]
    return shlex.join([*words, "--seed", str(seed)])


def _sentence(file: ScenarioFile, results: Sequence[Result]) -> str:
    first = results[0]
    return (
        f"{file.name}: {file.seconds:,.0f} s of virtual time, seed {first.seed}. Up to {first.devices_max:,} devices "
        f"would send {first.generated:,.0f} messages."
    )


def _figures(found: ClassResult) -> dict[str, Any]:
    return {
        "sent": found.sent,
        "processed": found.processed,
        "readings": found.readings,
        "delay s": found.delay_mean_s,
        "delay max s": found.delay_max_s,
        "age s": found.age_mean_s,
        "interval s": found.interval_mean_s,
        "interval max s": found.interval_max_s,
    }


def _rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    return [
        {"strategy": result.strategy}
        | _figures(result)
        | {"queue": result.queue_length_mean, "nodes": result.nodes_mean}
        for result in results
    ]


def _class_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Empty where there is but one class: it would say the same again."""
    if len(results[0].classes) == 1:
        return []
    return [
        {"strategy": result.strategy, "class": name} | _figures(found)
        for result in results
        for name, found in result.classes.items()
    ]


def _print(file: ScenarioFile, results: Sequence[Result], out: Path | None) -> None:
    console = console_on(sys.stdout)
    console.print(_sentence(file, results), markup=False, highlight=False, soft_wrap=True)
    for rows in (_rows(results), _class_rows(results)):
        if rows:
            console.print()
            console.print(rows_table(rows))
    console.print(f"\n{CAPTION}", markup=False, highlight=False)
    if out is not None:
        console.print(f"Plots and all results are in {out}.", markup=False, highlight=False, soft_wrap=True)


def _save(out: Path, file: ScenarioFile, results: Sequence[Result], command: str) -> None:
    from tidegate.sim import page, plots  # noqa: PLC0415 - matplotlib takes longer to load than most scenarios to run

    drawn = plots.figure(file, results)
    tables = [
        (list(rows[0]), [[show(value) for value in row.values()] for row in rows])
        for rows in (_rows(results), _class_rows(results))
        if rows
    ]
    name = file.name.replace("/", "-")
    plots.save(drawn, out / f"{name}.png", "png")
    text = page.page(
        file.name, _sentence(file, results), drawn, tables, key=FIGURE_KEY, caption=CAPTION, command=command
    )
    (out / f"{name}.html").write_text(text, encoding="utf-8")
    (out / f"{name}.json").write_bytes(msgspec.json.encode(results))
