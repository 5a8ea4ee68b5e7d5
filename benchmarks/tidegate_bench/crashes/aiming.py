"""Faults that wait for their moment: before a commit, in the middle of a compaction, in the middle of a move."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from tidegate_bench.crashes.damage import Outcome, family, freeze, send
from tidegate_bench.crashes.schedule import NODES, Fault
from tidegate_bench.crashes.site import SLICES, Site

HUNT_S = 20.0
LOOK_S = 0.0005
CAUGHT_S = 0.5
LOG_ENTRIES = 300  # more than are written while somebody is frozen


def before_commit(site: Site, fault: Fault, _: random.Random) -> Outcome:
    """Stop a node's driver when it has written a file and not yet committed it.

    It is stopped within a millisecond of a new file in the table's directory; it commits some tens later. A file does
    not say who wrote it: if it is committed although this driver is frozen, it was another's, and the next is waited
    for. Whoever is caught is killed, or frozen until others have taken its slices.
    """
    table = Path(site.chain.installation.tables) / "readings"
    begun_s, deadline_s = time.time(), time.monotonic() + HUNT_S
    caught = False
    while not caught and time.monotonic() < deadline_s:
        driver = family(site, fault.victim)[:1]
        known = _files(table)
        fresh = _await_new_file(table, known, deadline_s)
        send(driver, signal.SIGSTOP)
        try:
            time.sleep(CAUGHT_S)
            caught = bool(driver) and _lacks_one(table, fresh)
            if caught and fault.kind.startswith("kill"):
                send(driver, signal.SIGKILL)
            elif caught:
                time.sleep(fault.seconds)
                caught = _lacks_one(table, fresh)
        finally:
            send(driver, signal.SIGCONT)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=fault.victim, hit=caught)


def in_compaction(site: Site, fault: Fault, _: random.Random) -> Outcome:
    """Stop the maintainer while it has a file of a table open for writing."""
    tables = str(site.chain.installation.tables)
    begun_s, deadline_s = time.time(), time.monotonic() + HUNT_S
    caught = False
    while not caught and time.monotonic() < deadline_s:
        maintainer = family(site, fault.victim)[:1]
        if maintainer and (caught := _writes_below(maintainer[0].pid, tables)):
            if fault.kind.startswith("kill"):
                send(maintainer, signal.SIGKILL)
            else:
                freeze(maintainer, fault.seconds)
        time.sleep(LOOK_S)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=fault.victim, hit=caught)


def _writes_below(pid: int, directory: str) -> bool:
    descriptors = Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        for descriptor in descriptors.iterdir():
            with contextlib.suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith(directory) and target.endswith(".parquet"):
                    flags = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text().splitlines()[1].split()[1]
                    if int(flags, 8) & os.O_ACCMODE:
                        return True
    return False


def moving(site: Site, fault: Fault, chance: random.Random) -> Outcome:
    """Ask for a move, and hit the giver or the taker in the middle of it."""
    slice_ = chance.randrange(SLICES)
    giver = site.owner(slice_) or NODES[0]
    taker = next(name for name in NODES if name != giver)
    refusal = site.move(slice_, taker)
    time.sleep(chance.uniform(0.0, 0.5))
    begun_s = time.time()
    victim = giver if fault.kind.endswith("giver") else taker
    if fault.kind.startswith("kill"):
        send(family(site, victim)[:1], signal.SIGKILL)
    else:
        freeze(family(site, victim), fault.seconds)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=f"{victim}, slice {slice_}", hit=refusal is None)


def _files(table: Path) -> set[str]:
    return {path.name for path in table.glob("*=*/*.parquet")}


def _await_new_file(table: Path, known: set[str], deadline_s: float) -> set[str]:
    """Names that are not among the known; none where the time was up."""
    places = list(table.glob("*=*"))
    changed = [place.stat().st_mtime_ns for place in places]
    while time.monotonic() < deadline_s:
        if [place.stat().st_mtime_ns for place in places] != changed:
            return _files(table) - known
        time.sleep(LOOK_S)
    return set()


def _lacks_one(table: Path, files: set[str]) -> bool:
    """Whether one of the files is not in the newest part of the table's log."""
    texts = []
    for path in sorted((table / "_delta_log").glob("*.json"))[-LOG_ENTRIES:]:
        with contextlib.suppress(OSError):  # cleaned up meanwhile
            texts.append(path.read_text())
    log = "".join(texts)
    return any(name not in log for name in files)
