"""A directory for one query: its checkpoint, and what the processes tell that it starts. Nothing has to survive."""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path


class Scratch:
    """Made for one query of one node, removed after it."""

    def __init__(self, prefix: str) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix=prefix, dir=_parent()))
        self.checkpoint, self.evidence = self._directory / "checkpoint", self._directory / "evidence"
        self.evidence.mkdir()
        self.alive = self._directory / "alive"
        self._seen_ns = 0

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def has_new_part(self) -> bool:
        """Whether a task has written a part of its work since this was asked last; not known of other machines."""
        try:
            written_ns = self.alive.stat().st_mtime_ns
        except OSError:
            return False
        before, self._seen_ns = self._seen_ns, written_ns
        return written_ns != before

    def rows_planned(self) -> int:
        """The rows of the batch that Spark began last, by what it wrote down before; 0 where that cannot be told."""
        return self.batch_planned()[1]

    def batch_planned(self) -> tuple[int, int]:
        """Its number as well; -1 where that cannot be told."""
        try:
            number, start, end = _last_offsets(self.checkpoint / "offsets")
            return number, rows_between(start, end)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return -1, 0


def prefix_of(state: Path, node: str) -> str:
    """Names the node, so that it can clear away what a killed predecessor left."""
    place = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:12]
    return f"tidegate-{place}-{node}-"


def remove_leftovers(prefix: str) -> None:
    for leftover in Path(_parent()).glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def rows_between(start: dict[str, list[int]], end: dict[str, list[int]]) -> int:
    """An offset has ``[epoch, from, to]`` per slice; a slice that is new in ``end`` begins at its ``from``."""
    rows = 0
    for slice_, (epoch, begin, to, *_) in end.items():
        before = start.get(slice_)
        rows += max(0, to - (before[2] if before is not None and before[0] == epoch else begin))
    return rows


def _last_offsets(directory: Path) -> tuple[int, dict[str, list[int]], dict[str, list[int]]]:
    """Of the last two batches, and the last one's number: Spark keeps a file per batch, with one line per source behind
    two of its own."""
    numbers = sorted(int(file.name) for file in directory.iterdir() if file.name.isdigit())[-2:]
    found = [json.loads((directory / str(number)).read_text().splitlines()[2]) for number in numbers]
    return numbers[-1], (found[0] if len(found) > 1 else {}), found[-1]


def _parent() -> str:
    """Memory where there is some: nothing in a checkpoint has to survive, and it is written twice a batch."""
    shared = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a directory only its owner can enter
    return str(shared) if shared.is_dir() and os.access(shared, os.W_OK) else tempfile.gettempdir()
