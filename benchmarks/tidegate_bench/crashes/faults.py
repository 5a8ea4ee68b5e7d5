"""What is done to the installation: the fault of a plan, from its beginning to its end."""

import errno
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tidegate_bench.crashes import aiming, stores
from tidegate_bench.crashes.clocks import AHEAD_S, BEHIND_S
from tidegate_bench.crashes.damage import Outcome, family, freeze, member, send
from tidegate_bench.crashes.oracle import Window
from tidegate_bench.crashes.schedule import BROKERS, NODES, Fault
from tidegate_bench.crashes.site import CONTROL, Site


def commit(site: Site, fault: Fault) -> Outcome:
    """Do it, and return when it is over."""
    how, _, what = fault.kind.partition(" ")
    chance = random.Random(fault.draw)  # noqa: S311 - seeded
    if fault.kind in _SPECIAL:
        return _SPECIAL[fault.kind](site, fault, chance)
    begun_s = time.time()
    victims = _victims(site, what, fault.victim, chance)
    if how == "kill":
        send(victims, signal.SIGKILL)
    else:
        freeze(victims, fault.seconds)
    return Outcome(
        begun_s=begun_s,
        ended_s=time.time(),
        victim=", ".join([fault.victim, *(str(victim.pid) for victim in victims)]),
        hit=bool(victims),
    )


def _victims(site: Site, what: str, victim: str, chance: random.Random) -> list[psutil.Process]:
    """Of a part its own process alone, or all that it started as well."""
    if what == "all brokers":
        return [one for one in map(site.server, BROKERS) if one is not None]
    if what in ("broker", "control bus"):
        return [one for one in [site.server(victim)] if one is not None]
    if what in ("JVM", "worker", "planner"):
        return member(site, victim, what, chance)
    return family(site, victim)[: chance.choice((1, None))]


def _disk_full(site: Site, fault: Fault, _: random.Random) -> Outcome:
    """Nothing fits on the tables' disk any more, for a while. Without a disk of their own it cannot be filled."""
    begun_s = time.time()
    if not site.tables_disk:
        return Outcome(begun_s=begun_s, ended_s=begun_s, victim=fault.victim, hit=False)
    ballast = Path(site.chain.installation.tables) / "ballast"
    deadline_s = time.monotonic() + fault.seconds
    try:
        with ballast.open("wb", buffering=0) as file:
            # What others remove meanwhile is filled up as well.
            while time.monotonic() < deadline_s:
                try:
                    file.write(b"\0" * 65_536)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    time.sleep(0.05)
    finally:
        ballast.unlink(missing_ok=True)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=fault.victim)


def _clock(site: Site, fault: Fault, _: random.Random) -> Outcome:
    begun_s = time.time()
    site.clocks.step(fault.victim, AHEAD_S if fault.kind.endswith("ahead") else BEHIND_S)
    try:
        time.sleep(fault.seconds)
    finally:
        site.clocks.step(fault.victim, 0)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=fault.victim)


def _of_stores(site: Site, fault: Fault, chance: random.Random) -> Outcome:
    """All that is done to what servers have stored."""
    begun_s = time.time()
    window: Window | None = None
    victim = fault.victim
    if fault.kind == "set all stores back":
        window = stores.set_back(site, BROKERS, fault.seconds)
    elif fault.kind == "set a store back":
        window = stores.set_back(site, (fault.victim,), fault.seconds)
    elif fault.kind == "flip a bit":
        victim = stores.flip_a_bit(site, fault.victim, chance, lambda seconds: freeze(_both_nodes(site), seconds))
    elif fault.kind == "remove a broker":
        stores.wipe(site, fault.victim, fault.seconds)
    else:
        stores.wipe(site, CONTROL, fault.seconds)
    return Outcome(begun_s=begun_s, ended_s=time.time(), victim=victim, window=window)


def _both_nodes(site: Site) -> list[psutil.Process]:
    return [one for node in NODES for one in family(site, node)]


_SPECIAL: dict[str, Callable[[Site, Fault, random.Random], Outcome]] = {
    "freeze before commit": aiming.before_commit,
    "kill before commit": aiming.before_commit,
    "kill giver": aiming.moving,
    "freeze taker": aiming.moving,
    "kill in compaction": aiming.in_compaction,
    "freeze in compaction": aiming.in_compaction,
    "disk full": _disk_full,
    "clock ahead": _clock,
    "clock behind": _clock,
    "set all stores back": _of_stores,
    "set a store back": _of_stores,
    "flip a bit": _of_stores,
    "remove a broker": _of_stores,
    "lose the bus's store": _of_stores,
}
