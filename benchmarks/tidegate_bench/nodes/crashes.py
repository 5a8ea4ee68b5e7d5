"""``tidegate bench crashes``: processes killed or frozen at seeded moments while QoS 1 publishers keep sending.

Three brokers, two nodes, one installation for the whole run. Each round starts a load with a boot number of its own,
disturbs one part, and ends when every acknowledged reading is in the table. At the end a single undisturbed node reads
the same log into tables of its own, and its means must equal those of the disturbed nodes.
"""

import contextlib
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
from deltalake import DeltaTable

from tidegate.brokers.settings import BrokerSettings
from tidegate.local.waiting import wait_until
from tidegate.model.errors import TidegateError
from tidegate.pipeline.tables.ledger import LedgerVerdict
from tidegate.pipeline.transforms.means import merge
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.nodes.table_log import Advance, TableLog, accepted_fenced_writes
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.nodes import NodeProcess

ROUNDS = 45
SEED = 20
RATE = 600
SECONDS = 5.0
LEASE_S = 2.0
WINDOW_S = 10
SETTLE_S_MAX = 120.0
LOAD_S_MAX = 180.0
NODES = ("left", "right")
EPOCH_S = 1_760_000_000
FAULTS = (
    "kill driver",
    "stop driver",
    "kill worker",
    "stop worker",
    "kill broker",
    "stop broker",
    "kill cluster",
    "kill giver",
    "kill taker",
    "stop giver",
    "stop taker",
    "kill JVM",
    "kill planner",
    "stop cluster",
    "stop committer",
)


def run(progress: Progress, out: Path | None) -> Report:
    started = time.monotonic()
    with Rig(BrokerSettings(nodes=3, slices=8), out) as rig:
        progress.step("Starting two nodes on three brokers.")
        for name in NODES:
            _start(rig, name)
        for name in NODES:
            rig.wait(f"node {name}", partial(rig.has_progress, name), 120)
        log = TableLog(Path(rig.installation.tables) / "readings")
        advances: list[Advance] = []
        rows = []
        for number in range(ROUNDS):
            row = _round(rig, number, progress)
            advances.extend(log.new())
            rows.append(row)
        refused = sum(
            (rig.state / f"{name}.log").read_text(errors="replace").count("another node has it now") for name in NODES
        )
        verdict = rig.ledger()
        progress.step("Reading the same log once more with a single undisturbed node.")
        equal = _means_equal_single_node(rig)
    fenced = accepted_fenced_writes(advances)
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
    return Report("bench crashes", rows, checks, round(time.monotonic() - started, 1))


def _start(rig: Rig, name: str) -> NodeProcess:
    return rig.start_node(
        name, trigger_ms="100", lease_s=str(LEASE_S), window_s=str(WINDOW_S), purge_s="86400", snapshot_s="5"
    )


def _round(rig: Rig, number: int, progress: Progress) -> dict[str, Any]:
    fault = FAULTS[number % len(FAULTS)]
    chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - seeded faults
    progress.step(f"Round {number + 1} of {ROUNDS}: {fault}.")
    started = time.monotonic()
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
    victim = _disturb(rig, fault, chance)
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
        "seconds": round(time.monotonic() - started, 1),
    }


def _settled(rig: Rig, summary: dict[str, Any]) -> LedgerVerdict:
    if summary["acked"] != summary["sent"]:
        raise TidegateError(
            f"Only {summary['acked']} of {summary['sent']} readings were acknowledged: see {rig.state}."
        )

    def nothing_is_lost() -> bool:
        if not rig.ledger().lost:
            return True
        _revive(rig)
        return False

    wait_until(nothing_is_lost, SETTLE_S_MAX, 0.2)
    return rig.ledger()  # what is still missing then is reported as lost


def _revive(rig: Rig) -> None:
    """Start a node that ended by itself again, as ``tidegate up`` does."""
    for name, node in list(rig.nodes.items()):
        if not node.is_running:
            _start(rig, name)


# -- faults


def _disturb(rig: Rig, fault: str, chance: random.Random) -> str:
    how, what = fault.split()
    if what in ("broker", "cluster"):
        return _disturb_brokers(rig, how, what, chance)
    owner = chance.choice(NODES)
    if what in ("giver", "taker"):
        owner = _begin_move(rig, what, chance)
    _revive(rig)
    node = rig.nodes[owner]
    if what == "JVM":
        _part(node, "JVM", chance).kill()
        if not node.has_ended(60):
            raise TidegateError(f"Node {node.name} did not notice within 60 s that its JVM is gone: see its log.")
        _start(rig, owner)
    elif what in ("worker", "planner"):
        _disturb_part(node, how, what, chance)
    elif what == "committer":
        return f"{owner}, {'caught' if _freeze_before_commit(rig, node) else 'not caught'}"
    elif how == "stop":
        node.signal_all(signal.SIGSTOP)
        time.sleep(LEASE_S * 2)
        node.signal_all(signal.SIGCONT)
    else:
        node.kill()
        time.sleep(chance.uniform(0.0, LEASE_S * 1.5))
        _start(rig, owner)
    return owner


def _begin_move(rig: Rig, role: str, chance: random.Random) -> str:
    """Ask for a move and return at once: the fault hits it in the middle."""
    holds = rig.assignments.current().holds
    slice_ = chance.randrange(len(holds))
    giver = holds[slice_].owner or NODES[0]
    taker = NODES[1] if giver == NODES[0] else NODES[0]
    rig.assignments.move(slice_, taker)
    time.sleep(chance.uniform(0.0, 0.4))
    return giver if role == "giver" else taker


def _disturb_part(node: NodeProcess, how: str, what: str, chance: random.Random) -> None:
    victim = _part(node, what, chance)
    with contextlib.suppress(psutil.NoSuchProcess):
        if how == "kill":
            victim.kill()
        else:
            victim.suspend()
            time.sleep(LEASE_S * 2)
            victim.resume()


def _freeze_before_commit(rig: Rig, node: NodeProcess) -> bool:
    """Freeze a node that has written a file and not yet committed it, until others have taken its slices.

    The driver stops within a millisecond of a new file in the table's directory; it commits some tens later. A file
    does not say who wrote it: if it is committed although this node is frozen, it was the other one's, and the next is
    waited for, as long as readings come. Returns whether the node was caught.
    """
    table = Path(rig.installation.tables) / "readings"
    deadline_s = time.monotonic() + SECONDS / 2
    while time.monotonic() < deadline_s:
        known, changed_ns = set(table.iterdir()), table.stat().st_mtime_ns
        while table.stat().st_mtime_ns == changed_ns and time.monotonic() < deadline_s:
            time.sleep(0.0005)
        node.signal(signal.SIGSTOP)
        time.sleep(0.3)
        written = {path.name for path in set(table.iterdir()) - known if path.suffix == ".parquet"}
        log = "".join(path.read_text() for path in sorted((table / "_delta_log").glob("*.json"))[-20:])
        caught = any(name not in log for name in written)
        if caught:
            time.sleep(LEASE_S * 2)
        node.signal(signal.SIGCONT)
        if caught:
            return True
    return False


def _part(node: NodeProcess, what: str, chance: random.Random) -> psutil.Process:
    """One process of a node by what it is; a node that is starting anew may not have it for a moment."""
    for _ in range(100):
        found = node.workers() if what == "worker" else node.planners() if what == "planner" else node.jvms()
        if found:
            return chance.choice(found)
        time.sleep(0.1)
    raise TidegateError(f"Node {node.name} has no {what}: see its log.")


def _disturb_brokers(rig: Rig, how: str, what: str, chance: random.Random) -> str:
    victims = [chance.randrange(3)] if what == "broker" else [0, 1, 2]
    if how == "kill":
        for index in victims:
            rig.brokers.kill_node(index)
        time.sleep(chance.uniform(0.2, 2.0))
        for index in victims:
            rig.brokers.start_node(index, wait=False)
    else:
        for index in victims:
            rig.brokers.pause_node(index)
        time.sleep(LEASE_S * 2)
        for index in victims:
            rig.brokers.resume_node(index)
    return ",".join(f"broker-{index + 1}" for index in victims)


# -- the same log, once more


def _means_equal_single_node(rig: Rig) -> bool:
    for node in rig.nodes.values():
        node.stop()
    rig.nodes.clear()
    disturbed = Path(rig.installation.tables)
    reference = rig.state / "reference"
    reference.mkdir()
    msgspec.structs.replace(rig.installation, tables=str(reference / "tables")).save(reference)
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
