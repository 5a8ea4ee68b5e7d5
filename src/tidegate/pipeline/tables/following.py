"""A Delta table's own log, entry by entry, as it grows: what measurements of a running table are made from.

A table that lasts forgets: its log is cleaned after minutes, small files become large ones, and the small ones are
removed within the hour. What was committed when can therefore be seen only while it happens. A follower that is asked
regularly sees every entry once, and one that is asked too late says so instead of missing some.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidegate.model.errors import TidegateError


class LogEntry(NamedTuple):
    """One commit. ``at_s`` is when it appeared: from then on a reader of the table could see it."""

    version: int
    at_s: float
    actions: list[dict[str, Any]]

    def added(self) -> list[str]:
        """All files that it added, relative to the table."""
        return [unquote(add["path"]) for add in self._adds()]

    def appended(self) -> list[str]:
        """Those that brought new rows.

        A commit that removes files writes rows again that were there before, merged or without those that are deleted.
        """
        if any("remove" in action for action in self.actions):
            return []
        return [unquote(add["path"]) for add in self._adds() if add.get("dataChange", True)]

    def _adds(self) -> list[dict[str, Any]]:
        return [action["add"] for action in self.actions if "add" in action]


class LogFollower:
    """Sees what is committed from the moment it is made. Ask it more often than the log is cleaned."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = max(self._versions(), default=-1) + 1

    def follow(self) -> Iterator[LogEntry]:
        """The entries since the last call. Raises TidegateError where some of them are gone already."""
        while (entry := self._read()) is not None or (entry := self._come_meanwhile()) is not None:
            self._next += 1
            yield entry

    def _read(self) -> LogEntry | None:
        try:
            with (self._log / f"{self._next:020d}.json").open() as file:
                at_s, lines = os.fstat(file.fileno()).st_mtime, file.read().splitlines()
        except FileNotFoundError:
            return None
        return LogEntry(self._next, at_s, [json.loads(line) for line in lines if line])

    def _come_meanwhile(self) -> LogEntry | None:
        """Where the next entry is not there: None if it is still to come, itself if it has come just now.

        Versions have no gaps, so a later one proves that this one existed. The newest one is never cleaned.
        """
        newest = max(self._versions(), default=-1)
        if newest == self._next - 1:
            return None
        if newest < self._next:
            raise TidegateError(
                f"The log {self._log} ends at entry {newest}, although entry {self._next - 1} was read from it: the "
                "table was replaced, and what was measured of it is void."
            )
        entry = self._read()
        if entry is None:
            raise TidegateError(
                f"Entry {self._next} of the log {self._log} was cleaned away before it was read: ask for new entries "
                "more often than the log is cleaned, or keep it longer."
            )
        return entry

    def _versions(self) -> Iterator[int]:
        """Of all entries and checkpoints."""
        try:
            paths = list(self._log.iterdir())
        except FileNotFoundError:
            return
        for path in paths:
            version, _, kind = path.name.partition(".")
            if version.isdigit() and (kind == "json" or kind.startswith("checkpoint")):
                yield int(version)
