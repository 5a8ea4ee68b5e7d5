"""Reading a Delta table's own log as it grows: who advanced which slice, when, under which epoch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Advance(NamedTuple):
    """One slice in one commit. ``at_s`` is when the commit's file appeared, ``rows`` how many the commit added."""

    version: int
    at_s: float
    slice: int
    epoch: int
    offset: int
    files: int


class TableLog:
    """Follows ``_delta_log``; each call to ``new`` returns what has been committed since the last one."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = 0

    def new(self) -> Iterator[Advance]:
        while (path := self._log / f"{self._next:020d}.json").exists():
            yield from _advances(self._next, path)
            self._next += 1


def _advances(version: int, path: Path) -> Iterator[Advance]:
    actions = [json.loads(line) for line in path.read_text().splitlines() if line]
    records = {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}
    files = sum("add" in action for action in actions)
    at_s = path.stat().st_mtime
    for name, epoch in records.items():
        if name.endswith("-epoch"):
            app = name.removesuffix("-epoch")
            yield Advance(version, at_s, int(app.removeprefix("slice-")), epoch, records[app], files)


def accepted_fenced_writes(advances: list[Advance]) -> int:
    """Commits that went through although a higher epoch had been recorded for their slice before."""
    highest: dict[int, int] = {}
    violations = 0
    for advance in advances:
        if advance.epoch < highest.get(advance.slice, 0):
            violations += 1
        highest[advance.slice] = max(advance.epoch, highest.get(advance.slice, 0))
    return violations
