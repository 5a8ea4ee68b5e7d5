"""Table 1 of Gotin et al. (ICPE 2019): each strategy in the mean over all overload shares, beside the published one."""

import statistics
import time
from pathlib import Path

from tidegate.experiments import gotin_plots, gotin_runs
from tidegate.experiments.gotin_checks import adaptive_checks
from tidegate.experiments.gotin_runs import COUPLED_ADAPTIVE, FIGURES
from tidegate.experiments.mean_intervals import grouped
from tidegate.experiments.running import ReportRow
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress

DELAY_ORDER = ("autoscaling", "baseline", "coupled", "state-aware", "overload protection")
PROCESSED_ORDER = ("baseline", "autoscaling", "overload protection", "coupled", "state-aware")


def run(progress: Progress, out: Path | None, quick: bool) -> Report:
    began_s = time.monotonic()
    progress.step("simulating")
    rows = gotin_runs.run(progress.update, out, quick)
    table = summary(rows)
    if out is not None:
        progress.step("drawing")
        gotin_plots.table1(table, rows, out)
    return Report("gotin-table1", [*table, *rows], checks(rows), round(time.monotonic() - began_s, 1))


def summary(rows: list[ReportRow]) -> list[ReportRow]:
    """One row per strategy: our mean over all shares with the half width of its 95 % interval, and the published value.

    Every share counts alike, so the interval is that of the seeds' means over all shares.
    """
    published = gotin_runs.published()
    found = []
    for strategy, own in grouped(rows, lambda row: row["strategy"]).items():
        by_seed = [
            {name: statistics.fmean(row[name] for row in group) for name in FIGURES}
            for group in grouped(own, lambda row: row["seed"]).values()
        ]
        row: ReportRow = {"strategy": strategy}
        for name, one in gotin_runs.figures(by_seed).items():
            row |= {name: round(one.mean, 3), f"{name}_ci95": round(one.half, 3)}
            if strategy in published:
                row[f"{name}_published"] = published[strategy][name]
        found.append(row)
    return found


def checks(rows: list[ReportRow]) -> list[Check]:
    means = {
        strategy: {name: statistics.fmean(row[name] for row in own) for name in FIGURES}
        for strategy, own in grouped(rows, lambda row: row["strategy"]).items()
    }
    ours, theirs = means[COUPLED_ADAPTIVE], means["state-aware"]
    return [
        _order("delay_order", {name: means[name]["delay_mean_s"] for name in DELAY_ORDER}, DELAY_ORDER),
        _order("processed_order", {name: means[name]["processed"] for name in PROCESSED_ORDER}, PROCESSED_ORDER),
        *adaptive_checks(rows),
        Check.at_most("coupled_instances_vs_state_aware", round(ours["nodes_mean"] / theirs["nodes_mean"], 4), 1.0),
        above("coupled_processed_vs_state_aware", round(ours["processed"] / theirs["processed"], 4), 1.0),
    ]


def above(name: str, value: float, limit: float) -> Check:
    return Check(name, value, f"> {limit:g}", value > limit)


def _order(name: str, values: dict[str, float], expected: tuple[str, ...]) -> Check:
    found = sorted(values, key=lambda one: (-values[one], -expected.index(one)))  # a tie is not an order
    return Check.equal(name, " > ".join(found), " > ".join(expected))
