"""``tidegate bench crashes``: processes killed or frozen at seeded moments while QoS 1 publishers keep sending.

Three brokers, two nodes, one installation for the whole run. Each round starts a load with a boot number of its own,
disturbs one part, and ends when every acknowledged reading is in the table. At the end a single undisturbed node reads
the same log into tables of its own, and its means must equal those of the disturbed nodes.
"""

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from deltalake import DeltaTable

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.local.waiting import wait_until
from tidegate.model.errors import TidegateError
from tidegate.pipeline.tables.ledger import LedgerVerdict
from tidegate.pipeline.transforms.means import merge
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.nodes.faults import FAULTS, NODES, SECONDS, WINDOW_S, disturb, revive, start
from tidegate_bench.nodes.table_log import TableLog, accepted_fenced_writes
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.installation import Rig

ROUNDS = 45
SEED = 20
RATE = 600
SETTLE_S_MAX = 120.0
LOAD_S_MAX = 180.0
EPOCH_S = int(time.time())  # what is older than the identity horizon would be rejected


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    with Rig(BrokerSettings(nodes=3, slices=8), out) as rig:
        progress.step("Starting two nodes on three brokers.")
        for name in NODES:
            start(rig, name)
        for name in NODES:
            rig.wait(f"node {name}", partial(rig.has_progress, name), 120)
        log = TableLog(Path(rig.installation.tables) / "readings")
        with asked_regularly(log.follow):
            rows = [_round(rig, number, progress) for number in range(ROUNDS)]
        refused = sum(
            (rig.state / f"{name}.log").read_text(errors="replace").count("another node has it now") for name in NODES
        )
        verdict = rig.ledger()
        progress.step("Reading the same log once more with a single undisturbed node.")
        equal = _means_equal_single_node(rig)
    fenced = accepted_fenced_writes(log.advances)
    rows.append(
        {"acknowledged": verdict.acknowledged, "stored": verdict.stored, "refused_commits": refused, "seed": SEED}
    )
    checks = [
        Check.at_least("runs", len(rows) - 1, 40),
        Check.equal("lost", verdict.lost, 0),
        Check.equal("duplicated", verdict.duplicated, 0),
        Check.equal("fenced_writes", fenced, 0),
        # Else the fence was never needed, and the line above says little.
        Check.at_least("refused_commits", refused, 1),
        Check.equal("means_equal", equal, True),
    ]
    return Report("bench crashes", rows, checks, round(time.monotonic() - started_s, 1))


def _round(rig: Rig, number: int, progress: Progress) -> dict[str, Any]:
    fault = FAULTS[number % len(FAULTS)]
    chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - seeded faults
    progress.step(f"Round {number + 1} of {ROUNDS}: {fault}.")
    started_s = time.monotonic()
    load = rig.start_load(
        f"round-{number}",
        devices=40,
        connections=4,
        rate=RATE,
        seconds=SECONDS,
        seed=SEED,
        boot=number + 1,
        drain_s=120,
        event_time_start=EPOCH_S + number * 1000,
        event_step=0.1,
    )
    time.sleep(chance.uniform(0.8, 3.0))
    victim = disturb(rig, fault, chance)
    summary = load.last_answer(LOAD_S_MAX)
    verdict = _settled(rig, summary)
    return {
        "round": number,
        "fault": fault,
        "victim": victim,
        "sent": summary["sent"],
        "acked": summary["acked"],
        "resent": summary["resent"],
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "seconds": round(time.monotonic() - started_s, 1),
    }


def _settled(rig: Rig, summary: dict[str, Any]) -> LedgerVerdict:
    if summary["acked"] != summary["sent"]:
        raise TidegateError(
            f"Only {summary['acked']} of {summary['sent']} readings were acknowledged: see {rig.state}."
        )

    def nothing_is_lost() -> bool:
        if not rig.ledger().lost:
            return True
        revive(rig)
        return False

    wait_until(nothing_is_lost, SETTLE_S_MAX, 0.2)
    return rig.ledger()  # what is still missing then is reported as lost


# -- the same log, once more


def _means_equal_single_node(rig: Rig) -> bool:
    for node in rig.nodes.values():
        node.stop()
    rig.nodes.clear()
    disturbed = Path(rig.installation.tables)
    reference = rig.state / "reference"
    reference.mkdir()
    save_installation(msgspec.structs.replace(rig.installation, tables=str(reference / "tables")), reference)
    _reread(reference)
    tables = [DeltaTable(str(path / "means")).to_pyarrow_table() for path in (disturbed, reference / "tables")]
    first, second = (merge(table, WINDOW_S) for table in tables)
    return bool(first.num_rows > 0 and first.equals(second))


def _reread(reference: Path) -> None:
    """One node over all slices, from the beginning, until it has read everything."""
    subprocess.run(
        [sys.executable, "-m", "tidegate_bench.nodes.reread", str(reference), str(WINDOW_S)],
        check=True,
        timeout=300,
        stdout=subprocess.DEVNULL,
    )
