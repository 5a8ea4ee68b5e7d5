"""The demo with the policy ``adaptive``: a chain that grows with the flood, and devices held only for what it lacks.

One act: the flood comes, devices are held at once, a second processing node is started, and as it begins to work they
are released as far as both nodes take it. When the flood is over, its slices go back and it is stopped.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidegate.brokers.settings import BrokerSettings
from tidegate.demo.acts import Cue, Stage
from tidegate.demo.performance import Performance
from tidegate.demo.script import GROWING_NODES_MAX, environment, slowness
from tidegate.demo.verdict import Act, by_second
from tidegate.local.chain import Chain
from tidegate.pipeline import empty_batches
from tidegate.report.checks import Check, Report
from tidegate.settings.tree import Settings

DELAY_VS_EMPTY_BATCH_MAX = 3.0
SLICES = 4  # two for each node; every slice costs the broker something, and all of them share a small machine


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What the act comes to. A delay is from a message's arrival in the log to its commit, outside node start-up."""

    messages: int  # of the flood
    messages_counted: int  # of those, outside node start-up
    delay_s_p50: float
    delay_s_mean: float
    delay_s_p95: float
    delay_s_p50_starting: float  # of the others
    empty_batch_s: float
    nodes_started: int
    nodes_stopped: int
    interval_s_max: float
    interval_s_end: float
    acknowledged: int
    lost: int
    duplicated: int
    kept_schedule: bool


class Growing(Performance):
    def _chain(self, directory: Path) -> Chain:
        return Chain(
            directory,
            Settings(broker=BrokerSettings(slices=SLICES)),
            self._story.say,
            nodes_max=GROWING_NODES_MAX,
            controllers=self._controllers,
            environment=environment(growing=True),
            logs=True,
        )

    def _acts(self, stage: Stage) -> Report:
        act = stage.play("act-1", protected=True, calm_s=self._script.calm_s, cues=self._cues())
        self._story.say("  Measuring how long Spark takes over a batch of nothing.")
        empty_s = empty_batches.median_s(lambda: self._tell_waiting(stage))
        stage.ages.follow()
        rows = stage.ages.rows()
        found = growth(act, rows, empty_s)
        self._story.table("Verdict", table(found))
        self._story.say(slowness(growing=True))
        checked = checks(found)
        self._tell_checks(checked)
        document = {**msgspec.to_builtins(found), "script": msgspec.to_builtins(self._script)}
        documents = [document, msgspec.to_builtins(act), *by_second(act, rows)]
        return Report("demo", documents, checked, round(self._passed_s(), 1))

    def _tell_waiting(self, stage: Stage) -> None:
        stage.chain.watch()
        stage.ages.follow()
        self._story.wait("measuring", ["empty batches"])

    def _cues(self) -> list[Cue]:
        script, story = self._script, self._story
        flood_from, flood_to = script.flood(script.calm_s)
        return [
            (0.0, lambda: story.heading(f"Calm: {script.calm_devices} devices send every {script.interval_s:g} s")),
            (flood_from, lambda: story.heading(f"Flood: {script.flood_devices} devices, policy adaptive")),
            (flood_to, lambda: story.say("  The flood ends; what is not needed any more is given back.", "bold")),
        ]


def growth(act: Act, rows: pa.Table, empty_s: float) -> Growth:
    committed_s, arrived_s = (rows[name].to_numpy() for name in ("committed_s", "arrived_s"))
    flood = (arrived_s >= act.flood_from_s) & (arrived_s <= act.flood_to_s)
    starting = np.zeros(len(arrived_s), dtype=bool)
    # A node that was there from the beginning, and crashed, is no growth.
    first = {span.name for span in act.nodes if span.started_s <= act.began_s + 1.0}
    new = [span for span in act.nodes if span.name not in first]
    for span in new:
        until_s = span.working_s or span.ended_s or act.ended_s
        starting |= (committed_s >= span.started_s) & (arrived_s <= until_s)
    delays = committed_s - arrived_s
    counted, others = delays[flood & ~starting], delays[flood & starting]
    return Growth(
        messages=int(flood.sum()),
        messages_counted=len(counted),
        delay_s_p50=_quantile(counted, 0.5),
        delay_s_mean=round(float(counted.mean()), 3) if len(counted) else 0.0,
        delay_s_p95=_quantile(counted, 0.95),
        delay_s_p50_starting=_quantile(others, 0.5),
        empty_batch_s=round(empty_s, 4),
        nodes_started=sum(span.working_s is not None for span in new),
        nodes_stopped=sum(span.ended_s is not None for span in new),
        interval_s_max=act.interval_s_max,
        interval_s_end=act.interval_s_end,
        acknowledged=act.acknowledged,
        lost=act.lost,
        duplicated=act.duplicated,
        kept_schedule=bool(act.fleet["kept_schedule"]),
    )


def _quantile(values: np.ndarray[Any, Any], share: float) -> float:
    return round(float(np.quantile(values, share)), 3) if len(values) else 0.0


def checks(found: Growth) -> list[Check]:
    ratio = found.delay_s_p50 / found.empty_batch_s if found.messages_counted else float("inf")
    exact = found.lost == 0 and found.duplicated == 0 and found.acknowledged > 0
    return [
        Check.at_most("delay_vs_empty_batch", round(ratio, 2), DELAY_VS_EMPTY_BATCH_MAX),
        Check.equal("ledger_exact", exact, True),
        Check.at_least("nodes_started", found.nodes_started, 1),
        Check.at_least("nodes_stopped", found.nodes_stopped, 1),
        Check.equal("fleet_kept_schedule", found.kept_schedule, True),
    ]


def table(found: Growth) -> list[tuple[str, str]]:
    """The verdict as people read it."""
    stored = f"{found.acknowledged - found.lost:,} of {found.acknowledged:,}"
    stored += f", {found.duplicated:,} twice" if found.duplicated else ", each once"
    return [
        ("from the log into the table", f"{found.delay_s_p50:.2f} s (95 % within {found.delay_s_p95:.2f} s)"),
        ("the same while a node starts", f"{found.delay_s_p50_starting:.2f} s"),
        ("a batch of nothing takes", f"{found.empty_batch_s:.2f} s"),
        ("messages of the flood", f"{found.messages:,}"),
        ("acknowledged and stored", stored),
        ("nodes started, stopped", f"{found.nodes_started}, {found.nodes_stopped}"),
        ("longest advised interval", f"{found.interval_s_max:.2g} s"),
    ]
