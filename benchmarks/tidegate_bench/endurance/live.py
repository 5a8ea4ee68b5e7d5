"""Twenty minutes of the whole path with maintenance: does the stream notice it, and does anything grow?

Readings at a steady rate through a broker and a processing node into the tables, while a maintainer works as it does by
default. Slopes are of least squares over what was sampled after the first five minutes, with the half width of their
95 % interval.
"""

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import TABLES
from tidegate.model.tables import MaintenanceRun
from tidegate.pipeline.ages import Ages
from tidegate.report.progress import Progress
from tidegate_bench.endurance.batches import SLICES
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.jvm import heap_mib_after_collection
from tidegate_bench.rig.maintainers import MaintainerProcess
from tidegate_bench.rig.nodes import NodeProcess

SECONDS = 1_200.0
RATE = 1_000
SETTLED_S = 300.0
WEIGHED_EVERY = 6  # samples
SAMPLE_S = 10.0
NODE = "node-1"

Sample = dict[str, float]


def measure(progress: Progress) -> dict[str, Any]:
    with Rig(BrokerSettings(nodes=1, slices=SLICES)) as rig:
        node = rig.start_node(NODE)
        rig.wait("the node", lambda: rig.has_progress(NODE), 120)
        maintainer = MaintainerProcess(rig.state, {})
        ages = Ages(Path(rig.installation.tables) / "readings")
        load = rig.start_load("live", devices=500, connections=8, rate=RATE, seconds=SECONDS, seed=1)
        try:
            samples, runs = _watch(rig, node, maintainer, ages, progress)
            summary = load.last_answer(120)
            rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 120)
            ages.follow()
            verdict = rig.ledger()
        finally:
            maintainer.stop()
    worked = [run for run in runs if run.files_merged or run.log_entries_removed or run.files_removed]
    busy_s, idle_s = _apart(ages, worked)
    settled = [sample for sample in samples if sample["at_s"] >= samples[0]["at_s"] + min(SETTLED_S, SECONDS / 4)]
    return {
        "seconds": SECONDS,
        "sent": summary["sent"],
        "acknowledged": verdict.acknowledged,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "maintenance_runs": len(worked),
        "maintenance_s": round(sum(run.seconds for run in worked), 1),
        "age_s_p99_maintained": round(busy_s, 3),
        "age_s_p99_else": round(idle_s, 3),
        "maintenance_delay_ratio": round(busy_s / idle_s, 3),
        **_slopes(settled),
    }


def _watch(
    rig: Rig, node: NodeProcess, maintainer: MaintainerProcess, ages: Ages, progress: Progress
) -> tuple[list[Sample], list[MaintenanceRun]]:
    """What the processes hold, now and then, and every run of maintenance."""
    samples: list[Sample] = []
    runs: dict[tuple[str, float], MaintenanceRun] = {}
    deadline_s = time.monotonic() + SECONDS
    due_s = 0.0
    while time.monotonic() < deadline_s:
        time.sleep(0.5)
        ages.follow()
        state = rig.bus.get(TABLES)
        runs.update({(run.table, run.at_s): run for run in (state.runs if state else ())})
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + SAMPLE_S
            maintainer.keep_running(progress.step)
            samples.append(_sample(rig, node, maintainer, weigh=len(samples) % WEIGHED_EVERY == 0))
            left_s = deadline_s - time.monotonic()
            progress.update(f"{ages.messages:,} readings, {len(runs)} maintenance runs, {left_s:.0f} s to go")
    return samples, list(runs.values())


def _sample(rig: Rig, node: NodeProcess, maintainer: MaintainerProcess, *, weigh: bool) -> Sample:
    """``weigh``: ask the JVM too, which costs it a full collection."""
    jvms = {process.pid for process in node.jvms()}
    return {
        "at_s": time.time(),
        "python_mib": sum(_mib(process) for process in node.family() if process.pid not in jvms),
        "jvm_heap_mib": sum(map(_heap_mib, jvms)) if weigh else math.nan,
        "brokers_mib": sum(_mib(psutil.Process(pid)) for pid in rig.brokers.pids()),
        "maintainer_mib": _mib(psutil.Process(maintainer.pid)) if maintainer.pid else math.nan,
        "inodes": sum(1 for _ in _inodes(rig.state)),
    }


def _heap_mib(pid: int) -> float:
    try:
        return heap_mib_after_collection(pid)
    except OSError:  # it has ended, or does not answer
        return math.nan


def _mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 2**20
    except psutil.Error:
        return math.nan


def _inodes(directory: Path) -> Iterator[str]:
    for where, _, files in os.walk(directory):
        yield where
        yield from files


def _apart(ages: Ages, runs: list[MaintenanceRun]) -> tuple[float, float]:
    """The 99th percentile of the ages of what was committed while maintenance ran, and of all else."""
    rows = ages.rows()
    committed_s, taken_s = (rows[name].to_numpy() for name in ("committed_s", "taken_s"))
    began_s = float(committed_s.min()) + min(30.0, SECONDS / 10)  # a query takes a while to start
    maintained = np.zeros(len(committed_s), bool)
    for run in runs:
        maintained |= (committed_s >= run.at_s) & (committed_s <= run.at_s + run.seconds)
    late = committed_s >= began_s
    ages_s = committed_s - taken_s
    return tuple(  # type: ignore[return-value]
        float(np.percentile(ages_s[chosen & late], 99)) if (chosen & late).any() else math.nan
        for chosen in (maintained, ~maintained)
    )


def _slopes(samples: list[Sample]) -> Mapping[str, float]:
    found = {}
    for name in ("python_mib", "jvm_heap_mib", "brokers_mib", "maintainer_mib", "inodes"):
        slope, half_width = per_hour([sample["at_s"] for sample in samples], [sample[name] for sample in samples])
        found[f"{name}_per_hour"] = round(slope, 2)
        found[f"{name}_per_hour_half_width"] = round(half_width, 2)
    return found


def per_hour(at_s: list[float], values: list[float]) -> tuple[float, float]:
    """The slope per hour, and the half width of its 95 % interval."""
    known = [(at, value) for at, value in zip(at_s, values, strict=True) if not math.isnan(value)]
    if len(known) < 3:
        return math.nan, math.nan
    hours = np.array([at for at, _ in known]) / 3600
    hours -= hours.mean()
    measured = np.array([value for _, value in known])
    slope = float((hours * measured).sum() / (hours**2).sum())
    rest = measured - measured.mean() - slope * hours
    error = math.sqrt(float((rest**2).sum()) / (len(known) - 2) / float((hours**2).sum()))
    return slope, 1.96 * error
