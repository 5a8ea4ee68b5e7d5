"""``tidegate bench``: one benchmark by its name, always as a ratio to a peer in the same run."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import AsJson, make_directory
from tidegate.cli.report import Progress, Report, everything_else_to_stderr, print_report
from tidegate.model.errors import UserError

# name -> "module:function"; the function is run(progress, out) -> Report. Modules load only when they are
# asked for.
BENCHMARKS: dict[str, str] = {
    "crashes": "tidegate.benchmarks.crashes:run",
    "fuzz": "tidegate.benchmarks.fuzz:run",
    "gateway": "tidegate.benchmarks.gateway:run",
    "hostile": "tidegate.benchmarks.hostile.run:run",
    "interop": "tidegate.benchmarks.interop.matrix:run",
    "moves": "tidegate.benchmarks.moves:run",
    "outage": "tidegate.benchmarks.outage:run",
    "pipeline": "tidegate.benchmarks.pipeline:run",
    "send-rate-scale": "tidegate.benchmarks.send_rate_scale:run",
    "storm": "tidegate.benchmarks.storm:run",
}

Benchmark = Callable[[Progress, Path | None], Report]


def find(name: str) -> Benchmark:
    """The function registered under the name."""
    if name not in BENCHMARKS:
        remedy = f"choose one of {', '.join(sorted(BENCHMARKS))}" if BENCHMARKS else "none is registered yet"
        raise UserError(f"Unknown benchmark {name!r}: {remedy}.")
    module, _, function = BENCHMARKS[name].partition(":")
    benchmark: Benchmark = getattr(importlib.import_module(module), function)
    return benchmark


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark.")],
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Directory that keeps what the run leaves behind.")] = None,
) -> None:
    """Run a benchmark; exit status 0 where every check holds, 1 where one does not.

    \b
    Examples:
      tidegate bench pipeline
      tidegate bench moves --json > moves.json
      tidegate bench crashes --out results/
    """
    benchmark = find(name)
    make_directory(out)
    with everything_else_to_stderr(), Progress(f"bench {name}") as progress:
        report = benchmark(progress, out)
    print_report(report, as_json=as_json)
    raise typer.Exit(report.exit_status)
