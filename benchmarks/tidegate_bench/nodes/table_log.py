"""Who advanced which slice of a table, when, under which epoch: from the table's own log, as it grows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidegate.pipeline.tables.following import LogEntry, LogFollower


class Advance(NamedTuple):
    """One slice in one commit. ``at_s`` is when the commit appeared, ``files`` how many with new rows it added."""

    version: int
    at_s: float
    slice: int
    epoch: int
    offset: int
    files: int


class TableLog:
    """All ``advances`` since it was made, up to the last ``follow``."""

    def __init__(self, table: Path) -> None:
        self._log = LogFollower(table)
        self.advances: list[Advance] = []

    def follow(self) -> None:
        for entry in self._log.follow():
            self.advances.extend(_advances(entry))


def _advances(entry: LogEntry) -> Iterator[Advance]:
    records = {action["txn"]["appId"]: action["txn"]["version"] for action in entry.actions if "txn" in action}
    files = len(entry.appended())
    for name, epoch in records.items():
        if name.endswith("-epoch"):
            app = name.removesuffix("-epoch")
            slice_ = int(app.removeprefix("slice-"))
            yield Advance(entry.version, entry.at_s, slice_, epoch, records[app], files)


def accepted_fenced_writes(advances: list[Advance]) -> int:
    """Commits that went through although a higher epoch had been recorded for their slice before."""
    highest: dict[int, int] = {}
    violations = 0
    for advance in advances:
        if advance.epoch < highest.get(advance.slice, 0):
            violations += 1
        highest[advance.slice] = max(advance.epoch, highest.get(advance.slice, 0))
    return violations
