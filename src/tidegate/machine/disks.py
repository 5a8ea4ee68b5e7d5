"""How much room file systems have left, in bytes and in files: the second runs out as surely as the first."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SHORT_SHARE = 0.9


class Room(NamedTuple):
    """One file system; ``inodes`` is 0 where it does not count them."""

    bytes_used: int
    bytes_free: int
    inodes: int
    inodes_free: int

    @property
    def bytes_share(self) -> float:
        usable = self.bytes_used + self.bytes_free
        return self.bytes_used / usable if usable else 0.0

    @property
    def inodes_share(self) -> float:
        return 1 - self.inodes_free / self.inodes if self.inodes else 0.0


def room_at(path: Path) -> Room:
    """Of the file system that the path is on, or will be on once it exists."""
    found = os.statvfs(_existing(path))
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return Room(used, found.f_bavail * found.f_frsize, found.f_files, found.f_favail)


def shortages(places: Mapping[str, Path]) -> tuple[str, ...]:
    """A sentence for each file system below these places that is nearly full; places on the same one share it."""
    by_device: dict[int, dict[str, Path]] = {}
    for name, path in places.items():
        try:
            device = _existing(path).stat().st_dev
        except OSError:
            continue  # a place that nobody can look at is missed by those who need it
        by_device.setdefault(device, {})[name] = path
    told = [shortage(sharing, room_at(next(iter(sharing.values())))) for sharing in by_device.values()]
    return tuple(sentence for sentences in told for sentence in sentences)


def shortage(sharing: Mapping[str, Path], room: Room) -> tuple[str, ...]:
    """What is short where these places are, in bytes and in files; in words that change only with the per cent."""
    where = f"The disk of {' and '.join(f'{name} ({path})' for name, path in sharing.items())}"
    sentences = []
    if room.bytes_share >= SHORT_SHARE:
        sentences.append(
            f"{where} is {room.bytes_share:.0%} full: free space there, or keep rows for a shorter time; nothing can "
            "be committed once it is full."
        )
    if room.inodes_share >= SHORT_SHARE:
        sentences.append(
            f"{where} has used {room.inodes_share:.0%} of its inodes: compact the tables, which merges small files, or "
            "remove files there; no file can be made once they are gone."
        )
    return tuple(sentences)


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
