"""What is done to two nodes and their brokers in the middle of a load: killed or frozen, at a seeded moment."""

import contextlib
import random
import signal
import time
from pathlib import Path

import psutil

from tidegate.model.errors import TidegateError
from tidegate.pipeline.tables.following import LogFollower
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.nodes import NodeProcess

SECONDS = 5.0  # of the load
LEASE_S = 2.0
WINDOW_S = 10
NODES = ("left", "right")
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


def start(rig: Rig, name: str) -> NodeProcess:
    return rig.start_node(
        name, trigger_ms="100", lease_s=str(LEASE_S), window_s=str(WINDOW_S), purge_s="86400", snapshot_s="5"
    )


def revive(rig: Rig) -> None:
    """Start a node that ended by itself again, as ``tidegate up`` does."""
    for name, node in list(rig.nodes.items()):
        if not node.is_running:
            start(rig, name)


def disturb(rig: Rig, fault: str, chance: random.Random) -> str:
    how, what = fault.split()
    if what in ("broker", "cluster"):
        return _disturb_brokers(rig, how, what, chance)
    owner = chance.choice(NODES)
    if what in ("giver", "taker"):
        owner = _begin_move(rig, what, chance)
    revive(rig)
    node = rig.nodes[owner]
    if what == "JVM":
        _part(node, "JVM", chance).kill()
        if not node.has_ended(60):
            raise TidegateError(f"Node {node.name} did not notice within 60 s that its JVM is gone: see its log.")
        start(rig, owner)
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
        start(rig, owner)
    return owner


def _begin_move(rig: Rig, role: str, chance: random.Random) -> str:
    """Ask for a move and return at once: the fault hits it in the middle."""
    ownerships = rig.assignments.current().ownerships
    slice_ = chance.randrange(len(ownerships))
    giver = ownerships[slice_].owner or NODES[0]
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
    log, committed = LogFollower(table), set[str]()
    deadline_s = time.monotonic() + SECONDS / 2
    while time.monotonic() < deadline_s:
        known, changed_ns = _files(table), _changed_ns(table)
        while _changed_ns(table) == changed_ns and time.monotonic() < deadline_s:
            time.sleep(0.0005)
        node.signal(signal.SIGSTOP)
        time.sleep(0.3)
        written = _files(table) - known
        committed.update(path for entry in log.follow() for path in entry.added())
        caught = bool(written - committed)
        if caught:
            time.sleep(LEASE_S * 2)
        node.signal(signal.SIGCONT)
        if caught:
            return True
    return False


def _files(table: Path) -> set[str]:
    """All that lie there, committed or not. A partition has a directory of its own."""
    return {str(path.relative_to(table)) for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}


def _changed_ns(table: Path) -> int:
    """When a file last came into the table, or into one of its partitions."""
    return max(place.stat().st_mtime_ns for place in (table, *table.glob("*=*")))


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
            rig.brokers.kill_broker(index)
        time.sleep(chance.uniform(0.2, 2.0))
        for index in victims:
            rig.brokers.start_broker(index, wait=False)
    else:
        for index in victims:
            rig.brokers.pause_broker(index)
        time.sleep(LEASE_S * 2)
        for index in victims:
            rig.brokers.resume_broker(index)
    return ",".join(f"broker-{index + 1}" for index in victims)
