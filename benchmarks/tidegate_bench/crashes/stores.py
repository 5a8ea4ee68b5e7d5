"""Faults of what servers have stored: set back to an earlier moment, damaged by a bit, gone."""

import contextlib
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from tidegate_bench.crashes.oracle import Window
from tidegate_bench.crashes.site import Site

UNREAD_S = 4.0


def set_back(site: Site, brokers: Sequence[str], grow_s: float) -> Window:
    """A power failure: brokers come back with what they had stored some seconds before, all at the same moment."""
    copies = {name: site.state / f"{name}-copy" for name in brokers}
    with site.hold(), _frozen([site.server(name) for name in brokers]):
        from_s = time.time()
        for name, copy in copies.items():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(site.store(name), copy)
    time.sleep(grow_s)
    with site.hold():
        _end_at_once(site, brokers)
        for name, copy in copies.items():
            shutil.rmtree(site.store(name))
            shutil.move(copy, site.store(name))
        to_s = time.time()
    return Window(from_s=from_s, to_s=to_s)


def wipe(site: Site, server: str, away_s: float) -> None:
    """The server ends, its store is emptied, and it may come back."""
    with site.hold():
        site.end_server(server)
        for path in site.store(server).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        time.sleep(away_s)


def flip_a_bit(site: Site, broker: str, chance: random.Random, freeze_nodes: Callable[[float], None]) -> str:
    """One bit of messages that nobody has read yet, in one replica; half the time its broker then starts anew.

    The nodes are frozen meanwhile, so that the messages are unread. Returns which bit of which file it was.
    """
    freezing = threading.Thread(target=freeze_nodes, args=(UNREAD_S,))
    freezing.start()
    time.sleep(UNREAD_S / 2)
    blocks = sorted(path for path in site.store(broker).glob("jetstream/*/streams/*/msgs/*.blk") if path.stat().st_size)
    slices = [path for path in blocks if path.parts[-3].startswith("SLICE")]
    told = "no block to flip a bit in"
    if slices:
        told = _flip(chance.choice(slices), chance)
    if chance.random() < 0.5:
        with site.hold():
            site.end_server(broker)
        told += ", started anew"
    freezing.join()
    return f"{broker}, {told}"


def _flip(path: Path, chance: random.Random) -> str:
    """In the second half of the file, where the newest messages are."""
    size = path.stat().st_size
    place, bit = chance.randrange(size // 2, size), chance.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ (1 << bit)]))
    return f"{path.parts[-3]}/{path.name}, bit {bit} of byte {place} of {size}"


@contextlib.contextmanager
def _frozen(servers: Sequence[psutil.Process | None]) -> Iterator[None]:
    found = [server for server in servers if server is not None]
    try:
        for server in found:
            server.send_signal(signal.SIGSTOP)
        yield
    finally:
        for server in found:
            with contextlib.suppress(psutil.Error):
                server.send_signal(signal.SIGCONT)


def _end_at_once(site: Site, brokers: Sequence[str]) -> None:
    """As close together as signals go, then wait until they are gone."""
    for server in [site.server(name) for name in brokers]:
        if server is not None:
            server.kill()
    for name in brokers:
        site.end_server(name)
