"""The runs behind Table 1 and Figure 5: every strategy at every overload share, on held-out seeds."""

import importlib.resources
from pathlib import Path
from typing import Any

import msgspec

from tidegate.experiments import gotin_case, tuning
from tidegate.experiments.mean_intervals import MeanInterval, mean_interval
from tidegate.experiments.running import Job, ReportRow, Tell, run_all
from tidegate.sim.scenario import Strategy

ADAPTIVE, COUPLED_ADAPTIVE = "adaptive", "adaptive, coupled"
FIGURES = (
    "processed",
    "queue_length_mean",
    "delay_mean_s",
    "delay_max_s",
    "interval_mean_s",
    "interval_max_s",
    "nodes_mean",
)
QUICK_SEEDS = 2


def strategies(share_percent: int) -> list[Strategy]:
    """The document's five, the oracle, the tuned ones, and ours with provisioning of its own."""
    node_count = gotin_case.NODES_MAX[share_percent]
    found = [*gotin_case.published_strategies(node_count), *tuning.tuned_strategies()]
    options: dict[str, Any] = dict(tuning.tuned()[ADAPTIVE].options)
    options["provisioning"] = {"nodes_max": node_count, "start_s": gotin_case.START_S}
    return [*found, Strategy(name=COUPLED_ADAPTIVE, policy=ADAPTIVE, options=options, nodes_at_start=1)]


def run(tell: Tell, out: Path | None, quick: bool) -> list[ReportRow]:
    """One row per share, strategy and seed."""
    seeds = gotin_case.HELD_OUT_SEEDS[:QUICK_SEEDS] if quick else gotin_case.HELD_OUT_SEEDS
    shares = list(gotin_case.NODES_MAX)
    jobs = [
        Job(scenario=gotin_case.scenario(share), strategy=strategy, seed=seed)
        for share in shares
        for strategy in strategies(share)
        for seed in seeds
    ]
    rows = run_all(jobs, tell, out)
    per_share = len(jobs) // len(shares)
    return [{"share_percent": shares[place // per_share], **slim(row)} for place, row in enumerate(rows)]


def slim(row: ReportRow) -> ReportRow:
    """What checks and readers need of a run."""
    names = ("scenario", "strategy", "policy", "seed", *FIGURES, "delay_all_mean_s", "generated", "sent", "readings")
    return {name: row[name] for name in (*names, "age_mean_s", "decisions")}


def figures(rows: list[ReportRow]) -> dict[str, MeanInterval]:
    """Each figure over these rows, with its interval."""
    return {name: mean_interval([row[name] for row in rows]) for name in FIGURES}


def published() -> dict[str, dict[str, float]]:
    file = importlib.resources.files("tidegate.experiments").joinpath("published/gotin-table1.json")
    document: dict[str, dict[str, dict[str, float]]] = msgspec.json.decode(file.read_bytes())
    return document["strategies"]
