"""Figure 5 of Gotin et al. (ICPE 2019): processed messages, queueing delay and send interval per overload share."""

import time
from pathlib import Path

from tidegate.experiments import gotin_plots, gotin_runs
from tidegate.experiments.gotin_checks import adaptive_checks
from tidegate.experiments.mean_intervals import grouped
from tidegate.experiments.running import ReportRow
from tidegate.report.checks import Report
from tidegate.report.progress import Progress


def run(progress: Progress, out: Path | None, quick: bool) -> Report:
    began_s = time.monotonic()
    progress.step("simulating")
    rows = gotin_runs.run(progress.update, out, quick)
    table = per_share(rows)
    if out is not None:
        progress.step("drawing")
        gotin_plots.fig5(table, out)
    return Report("gotin-fig5", [*table, *rows], adaptive_checks(rows), round(time.monotonic() - began_s, 1))


def per_share(rows: list[ReportRow]) -> list[ReportRow]:
    """One row per share and strategy: mean and half width of the 95 % interval over the seeds."""
    found = []
    for (share, strategy), own in grouped(rows, lambda row: (row["share_percent"], row["strategy"])).items():
        row: ReportRow = {"share_percent": share, "strategy": strategy, "seeds": len(own)}
        for name, one in gotin_runs.figures(own).items():
            row |= {name: round(one.mean, 3), f"{name}_ci95": round(one.half, 3)}
        found.append(row)
    return found
