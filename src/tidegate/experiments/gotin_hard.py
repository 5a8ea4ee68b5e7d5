"""Harder than the case study: every policy where sensors are late, capacity goes, or messages differ."""

import statistics
import time
from pathlib import Path

from tidegate.experiments import gotin_case, gotin_plots, gotin_runs, hard_cases, tuning
from tidegate.experiments.gotin_runs import ADAPTIVE, QUICK_SEEDS
from tidegate.experiments.mean_intervals import grouped, mean_interval
from tidegate.experiments.running import Job, ReportRow, run_all
from tidegate.experiments.tuning import ORACLE
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate.sim.scenario import Scenario, Strategy

VS_ORACLE_MIN = 0.93
BEATS_SHARE_MIN = 0.5
FRESH_S = 0.5
CONTROL_PERIODS = 3
# How late and how wrong views are. The bound says nothing about noise: with it, recoveries are reported, not checked.
SURGES = ((0.0, 0.0), (5.0, 0.0), (5.0, 0.2))
NONE = "none"


def run(progress: Progress, out: Path | None, quick: bool) -> Report:
    began_s = time.monotonic()
    seeds = gotin_case.HELD_OUT_SEEDS[:QUICK_SEEDS] if quick else gotin_case.HELD_OUT_SEEDS
    progress.step("simulating")
    rows = run_all(_jobs(hard_cases.hard(), strategies(), seeds), progress.update, out)
    surges = {hard_cases.surge(*one).name: hard_cases.surge(*one) for one in SURGES}
    ours = [one for one in strategies() if one.name == ADAPTIVE]
    surged = run_all(_jobs(list(surges.values()), ours, seeds, series=True), progress.update, out)
    recoveries = [recovery(row, surges[row["scenario"]]) for row in surged]
    table = summary(rows)
    if out is not None:
        progress.step("drawing")
        gotin_plots.hard(table, out)
    found = [*table, *recoveries, *(gotin_runs.slim(row) for row in rows)]
    return Report("gotin-hard", found, checks(table, recoveries), round(time.monotonic() - began_s, 1))


def strategies() -> list[Strategy]:
    """No protection, the document's policy as published, every tuned policy, and the oracle."""
    published = gotin_case.published_strategies(1)[2]
    return [
        Strategy(policy=NONE),
        Strategy(name="gotin", policy="gotin", options=published.options, overload=published.overload),
        *tuning.tuned_strategies(),
    ]


def _jobs(
    scenarios: list[Scenario], chosen: list[Strategy], seeds: tuple[int, ...], *, series: bool = False
) -> list[Job]:
    return [
        Job(scenario=scenario, strategy=strategy, seed=seed, series=series)
        for scenario in scenarios
        for strategy in chosen
        for seed in seeds
    ]


def summary(rows: list[ReportRow]) -> list[ReportRow]:
    found = []
    for (scenario, strategy), own in grouped(rows, lambda row: (row["scenario"], row["strategy"])).items():
        row: ReportRow = {"scenario": scenario, "strategy": strategy, "seeds": len(own)}
        for name in ("processed", "delay_all_mean_s", "delay_max_s", "interval_mean_s"):
            one = mean_interval([single[name] for single in own])
            row |= {name: round(one.mean, 3), f"{name}_ci95": round(one.half, 3)}
        found.append(row)
    return found


def recovery(row: ReportRow, scenario: Scenario) -> ReportRow:
    """When the data of one run is fresh again after the surge, and stays so, against when it has to be."""
    series = row["series"]
    seconds = zip(series["at_s"], series["delay_s"], series["head_age_s"], series["departures"], strict=True)
    late = [
        at_s
        for at_s, delay_s, head_age_s, departures in seconds
        # Where nothing was served, what waits is as old as it is.
        if at_s > hard_cases.SURGE_AT_S and (delay_s if departures else head_age_s) >= FRESH_S
    ]
    took_s = max(late, default=hard_cases.SURGE_AT_S) - hard_cases.SURGE_AT_S
    monitoring = scenario.monitoring
    allowed_s = monitoring.delay_s + row["interval_max_s"] + CONTROL_PERIODS * monitoring.period_s
    return {
        "surge": row["scenario"],
        "noise": monitoring.noise,
        "seed": row["seed"],
        "recovered_after_s": round(took_s, 2),
        "allowed_s": round(allowed_s, 2),
        "delay_max_s": row["delay_max_s"],
        "interval_max_s": row["interval_max_s"],
    }


def checks(table: list[ReportRow], recoveries: list[ReportRow]) -> list[Check]:
    found, beats = [], []
    for scenario, own in grouped(table, lambda row: row["scenario"]).items():
        by_name = {row["strategy"]: row for row in own}
        ours, gotin = by_name[ADAPTIVE], by_name["gotin"]
        better = [name for name, row in by_name.items() if name != ORACLE and _dominates(row, ours)]
        share = ours["processed"] / by_name[ORACLE]["processed"]
        found += [
            Check.at_least(f"hard_vs_oracle[{scenario}]", round(share, 4), VS_ORACLE_MIN),
            Check.equal(f"hard_not_dominated[{scenario}]", ", ".join(better) or "by none", "by none"),
        ]
        beats.append(ours["processed"] > gotin["processed"] and ours["delay_all_mean_s"] < gotin["delay_all_mean_s"])
    found.append(Check.at_least("hard_beats_gotin", round(statistics.fmean(beats), 3), BEATS_SHARE_MIN))
    exact = [row for row in recoveries if row["noise"] == 0]
    for surge, own in grouped(exact, lambda row: row["surge"]).items():
        late = [row["seed"] for row in own if row["recovered_after_s"] > row["allowed_s"]]
        found.append(Check.equal(f"surge_recovery_ok[{surge}]", not late, True))
    return found


def _dominates(other: ReportRow, ours: ReportRow) -> bool:
    """At least as good in both, and better in one."""
    more, sooner = other["processed"] - ours["processed"], ours["delay_all_mean_s"] - other["delay_all_mean_s"]
    return bool(more >= 0 and sooner >= 0 and (more > 0 or sooner > 0))
