"""The same tuning budget for every policy: so many draws from its ranges, on the same training runs.

The score of a setting is, in the mean over the training runs, the processed messages over the oracle's less a tenth per
second of mean queueing delay, at most 1: a second of delay is worth as much as a tenth of the messages. The first draw
is the policy's own defaults, so tuning never makes it worse on the training runs. Results are data (``tuned.json``);
every experiment reads them, on other seeds.
"""

import functools
import importlib.resources
import math
import random
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec

from tidegate.experiments import gotin_case, hard_cases
from tidegate.experiments.mean_intervals import grouped
from tidegate.experiments.running import Job, ReportRow, run_all
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate.sim.scenario import Scenario, Strategy

BUDGET = 32
SEED = 20261116
TUNED_FILE = "tuned.json"
ORACLE = "oracle"
LENGTH = "queue_length"  # not an option of the policy, but of the overload event


class Range(msgspec.Struct, frozen=True):
    low: float
    high: float
    logarithmic: bool = False
    whole: bool = False

    def draw(self, chance: random.Random) -> float:
        if self.logarithmic:
            drawn = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            drawn = chance.uniform(self.low, self.high)
        return round(drawn) if self.whole else round(drawn, 4)


RANGES: dict[str, dict[str, Range]] = {
    "oracle": {"horizon_s": Range(1.0, 20.0, True), "utilisation": Range(0.9, 1.0)},
    "gotin": {
        "k_protect": Range(0.5, 0.99),
        "k_recover": Range(1.01, 2.0),
        "iteration_s": Range(0.5, 5.0, True),
        LENGTH: Range(1.0, 50.0, True),
    },
    "adaptive": {
        "horizon_s": Range(1.0, 8.0, True),
        "standing_s": Range(0.1, 0.25),
        "utilisation": Range(0.96, 1.01),
        "cut": Range(0.2, 0.9),
        "probe_per_s": Range(0.001, 0.03, True),
        "forget_s": Range(8.0, 60.0, True),
    },
    "spark-pid": {
        "proportional": Range(0.2, 1.5),
        "integral": Range(0.02, 2.0, True),
        "derivative": Range(0.0, 0.5),
        "iteration_s": Range(0.5, 5.0, True),
        "min_share": Range(0.005, 0.2, True),
    },
    "gradient2": {
        "tolerance": Range(1.0, 3.0),
        "smoothing": Range(0.05, 1.0, True),
        "long_window": Range(30, 1000, True, whole=True),
        "limit_per_device": Range(0.02, 2.0, True),
        "queue_per_device": Range(0.005, 0.5, True),
        "iteration_s": Range(0.5, 5.0, True),
        "min_share": Range(0.005, 0.2, True),
    },
    "credits": {
        "target_delay_s": Range(0.05, 2.0, True),
        "alpha": Range(0.001, 0.2, True),
        "beta": Range(0.005, 1.0, True),
        "overcommitment": Range(0.0, 1.0),
        "period_s": Range(0.5, 5.0, True),
        "min_share": Range(0.005, 0.2, True),
    },
}


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    options: dict[str, float | int]
    score: float
    score_of_defaults: float


@functools.cache
def tuned() -> dict[str, Tuned]:
    file = importlib.resources.files("tidegate.experiments").joinpath(TUNED_FILE)
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Tuned])


def strategy(policy: str, options: dict[str, float], name: str = "") -> Strategy:
    """A policy with drawn or tuned options; the queue length of the overload event is one of them where it matters."""
    own = {key: value for key, value in options.items() if key != LENGTH}
    overload = f"waiting > nodes_working + {options[LENGTH]:g}" if LENGTH in options else gotin_case.LENGTH_ABOVE_1
    return Strategy(name=name or policy, policy=policy, options=own, overload=overload)


def tuned_strategies() -> list[Strategy]:
    """Every policy with what tuning found, the oracle last. The name gotin is for the published one."""
    names = {"gotin": "gotin, tuned"}
    order = sorted(tuned().items(), key=lambda one: one[0] == ORACLE)
    return [strategy(policy, found.options, names.get(policy, policy)) for policy, found in order]


def training_scenarios() -> list[Scenario]:
    cases = [gotin_case.scenario(20), gotin_case.scenario(50), hard_cases.surge(delay_s=5.0, noise=0.0)]
    return cases + [one for one in hard_cases.hard() if one.name != hard_cases.ten_times().name]


def draws(policy: str, budget: int) -> list[dict[str, float]]:
    chance = random.Random(f"{SEED} {policy}")  # noqa: S311 - a search, not a secret
    ranges = RANGES[policy]
    return [{}] + [{name: one.draw(chance) for name, one in ranges.items()} for _ in range(budget - 1)]


def run(progress: Progress, out: Path | None, quick: bool) -> Report:
    """Tune every policy; the result is printed, and written to ``out`` in the form in which experiments read it."""
    began_s = time.monotonic()
    budget = 3 if quick else BUDGET
    scenarios = training_scenarios()[:1] if quick else training_scenarios()
    tried = {policy: draws(policy, budget) for policy in RANGES}
    jobs = _jobs(scenarios, Strategy(policy=ORACLE))
    for policy, settings in tried.items():
        for number, options in enumerate(settings):
            jobs += _jobs(scenarios, strategy(policy, options, f"{policy} {number}"))
    progress.step(f"{len(jobs)} training runs")
    scores = _scores(run_all(jobs, progress.update, out))
    rows, best = [], {}
    for policy, settings in tried.items():
        found = [scores[f"{policy} {number}"] for number in range(len(settings))]
        place = found.index(max(found))
        best[policy] = Tuned(
            options=settings[place], score=round(found[place], 4), score_of_defaults=round(found[0], 4)
        )
        rows += [{"policy": policy, "score": score, **one} for score, one in zip(found, settings, strict=True)]
    if out is not None:
        (out / TUNED_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(best)) + b"\n")
    summary: list[dict[str, Any]] = [{"best": policy, **msgspec.to_builtins(one)} for policy, one in best.items()]
    return Report("gotin-tuning", [*summary, *rows], [], round(time.monotonic() - began_s, 1))


def _jobs(scenarios: list[Scenario], chosen: Strategy) -> list[Job]:
    return [Job(scenario=one, strategy=chosen, seed=seed) for one in scenarios for seed in gotin_case.TRAINING_SEEDS]


def _scores(rows: list[ReportRow]) -> dict[str, float]:
    oracle = {(row["scenario"], row["seed"]): row["processed"] for row in rows if row["strategy"] == ORACLE}

    def score(row: ReportRow) -> float:
        processed = row["processed"] / oracle[row["scenario"], row["seed"]]
        return float(processed - min(1.0, 0.1 * row["delay_all_mean_s"]))

    return {name: statistics.fmean(map(score, found)) for name, found in grouped(rows, _strategy).items()}


def _strategy(row: ReportRow) -> str:
    return str(row["strategy"])
