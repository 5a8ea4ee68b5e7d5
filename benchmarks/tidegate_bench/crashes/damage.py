"""Who is hit, how processes are killed and frozen, and what a fault really did."""

import contextlib
import random
import signal
import time

import msgspec
import psutil

from tidegate_bench.crashes.oracle import Window
from tidegate_bench.crashes.site import Site
from tidegate_bench.rig.nodes import kind_of

PART_S_MAX = 20.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``hit``: it found what it aimed at. ``window``: acknowledged in it, a reading may be lost."""

    begun_s: float
    ended_s: float
    victim: str
    hit: bool = True
    window: Window | None = None


def family(site: Site, part: str) -> list[psutil.Process]:
    """The part's own process first, then all that it started; nobody where it does not run."""
    pid = site.part(part).pid
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid) if pid is not None else None
        return [] if parent is None else [parent, *parent.children(recursive=True)]
    return []


def member(site: Site, node: str, kind: str, chance: random.Random) -> list[psutil.Process]:
    """One process of a node by what it is; a node that is starting anew may not have it for a moment."""
    deadline_s = time.monotonic() + PART_S_MAX
    while time.monotonic() < deadline_s:
        found = [one for one in family(site, node)[1:] if kind_of(one) == kind]
        if found:
            return [chance.choice(found)]
        time.sleep(0.1)
    return []


def send(victims: list[psutil.Process], number: signal.Signals) -> None:
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.send_signal(number)


def freeze(victims: list[psutil.Process], seconds: float) -> None:
    send(victims, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        send(victims, signal.SIGCONT)
