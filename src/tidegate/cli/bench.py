"""``tidegate bench``: one benchmark by its name, always as a ratio to a peer in the same run."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
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
# name -> "module:function"; the function is run(progress, out, *, options) -> Report. Modules load only when they are
# asked for.
BENCHMARKS: dict[str, str] = {
    "audit": "tidegate_bench.audit.run:run",
    "calm": "tidegate_bench.calm:run",
    "chain": "tidegate_bench.chain.run:run",
    "crashes": "tidegate_bench.crashes.run:run",
    "demo": "tidegate_bench.demos:run",
    "endurance": "tidegate_bench.endurance.run:run",
    "fuzz": "tidegate_bench.fuzz.run:run",
    "gateway": "tidegate_bench.gateway.run:run",
    "hostile": "tidegate_bench.hostile.run:run",
    "identity": "tidegate_bench.identity.run:run",
    "ledger": "tidegate_bench.gateway.ledger:run",
    "interop": "tidegate_bench.interop.matrix:run",
    "moves": "tidegate_bench.nodes.moves:run",
    "outage": "tidegate_bench.outage:run",
    "pipeline": "tidegate_bench.pipeline.run:run",
    "send-rate-scale": "tidegate_bench.send_rate_scale:run",
    "storm": "tidegate_bench.storm.run:run",
}

Benchmark = Callable[..., Report]


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


def options_of(name: str, benchmark: Benchmark, given: Mapping[str, int | None]) -> dict[str, int]:
    """Those that were given, if the benchmark takes them: they are its keyword arguments of the same name."""
    chosen = {option: value for option, value in given.items() if value is not None}
    taken = inspect.signature(benchmark).parameters
    unknown = [f"--{option}" for option in chosen if option not in taken]
    if unknown:
        own = [f"--{option}" for option in given if option in taken]
        remedy = f"it takes {' and '.join(own)}" if own else "leave it out"
        raise UserError(f"Benchmark {name} takes no {' or '.join(unknown)}: {remedy}.")
    return chosen


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark.")],
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Directory that keeps what the run leaves behind.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How many rounds, where it consists of such.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of what is random in it, where something is.")] = None,
) -> None:
    """Run a benchmark; exit status 0 where every check holds, 1 where one does not.

    \b
    Examples:
      tidegate bench pipeline
      tidegate bench moves --json > moves.json
      tidegate bench moves --rounds 50 --seed 3
      tidegate bench crashes --rounds 100 --out results/
    """
    benchmark = find(name)
    options = options_of(name, benchmark, {"rounds": rounds, "seed": seed})
    make_directory(out)
    with everything_else_to_stderr(), Progress(f"bench {name}") as progress:
        report = benchmark(progress, out, **options)
    print_report(report, as_json=as_json)
    raise typer.Exit(report.exit_status)
