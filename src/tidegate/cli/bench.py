"""``tidegate bench``: one benchmark by its name, always as a ratio to a peer in the same run."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import AsJson, make_directory
from tidegate.model.errors import UserError
from tidegate.report.checks import Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate.report.streams import everything_else_to_stderr

PACKAGE = "tidegate_bench"
CHECKOUT = Path(__file__).parents[3] / "benchmarks"
# name -> "module:function"; the function is run(progress, out) -> Report. Modules load only when they are
# asked for.
BENCHMARKS: dict[str, str] = {
    "crashes": "tidegate_bench.nodes.crashes:run",
    "fuzz": "tidegate_bench.fuzz.run:run",
    "gateway": "tidegate_bench.gateway.run:run",
    "hostile": "tidegate_bench.hostile.run:run",
    "ledger": "tidegate_bench.gateway.ledger:run",
    "interop": "tidegate_bench.interop.matrix:run",
    "moves": "tidegate_bench.nodes.moves:run",
    "outage": "tidegate_bench.outage:run",
    "pipeline": "tidegate_bench.pipeline.run:run",
    "send-rate-scale": "tidegate_bench.send_rate_scale:run",
    "storm": "tidegate_bench.storm.run:run",
}

Benchmark = Callable[[Progress, Path | None], Report]


def find(name: str) -> Benchmark:
    """The function registered under the name."""
    if name not in BENCHMARKS:
        remedy = f"choose one of {', '.join(sorted(BENCHMARKS))}" if BENCHMARKS else "none is registered yet"
        raise UserError(f"Unknown benchmark {name!r}: {remedy}.")
    _make_importable()
    module, _, function = BENCHMARKS[name].partition(":")
    benchmark: Benchmark = getattr(importlib.import_module(module), function)
    return benchmark


def _make_importable() -> None:
    """Benchmarks are no part of the product: they come from the checkout this runs in, or from the extra ``bench``."""
    if importlib.util.find_spec(PACKAGE) is not None:
        return
    if not (CHECKOUT / PACKAGE).is_dir():
        raise UserError(
            "The benchmarks are not installed: run this command in a checkout, or install them with "
            "'pip install tidegate[bench]'."
        )
    sys.path.append(str(CHECKOUT))
    # The processes that a benchmark starts have to find them too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(CHECKOUT))))


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
