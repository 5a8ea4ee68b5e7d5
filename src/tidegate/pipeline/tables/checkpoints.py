"""Checkpoints of a table's log, so that nobody has to read it from its beginning.

delta-rs takes 40 KB of memory for every entry behind the newest checkpoint: a log that nobody looked after for a day
would take a machine's memory, in every process that opens it. So whoever finds that many brings the checkpoints up
first, in stages: each is done in a directory of its own that holds only the entries it needs. What was done stays done,
whenever it is ended. One does it, under a lock that the kernel frees when it dies; others wait for it.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

ENTRY, CHECKPOINT = ".json", ".checkpoint.parquet"
STEP = 5_000
BEHIND_MAX = 2 * STEP  # entries that may be read as they are
STAGE = "_checkpointing"
_LOCK = "_checkpointing.lock"
_LOOK_S = 0.25


@dataclass(frozen=True)
class LogListing:
    """What is in ``_delta_log``: versions in ascending order, and the names of what belongs to none."""

    directory: Path
    entries: tuple[int, ...]
    checkpoints: tuple[int, ...]
    others: tuple[str, ...]

    @property
    def newest(self) -> int:
        return self.entries[-1] if self.entries else -1

    @property
    def checkpoint(self) -> int:
        """The newest; -1 where there is none."""
        return self.checkpoints[-1] if self.checkpoints else -1


def listing(directory: Path) -> LogListing:
    entries: list[int] = []
    checkpoints: list[int] = []
    others: list[str] = []
    with os.scandir(directory) as found:
        for entry in found:
            version, suffix = entry.name[:20], entry.name[20:]
            if suffix in (ENTRY, CHECKPOINT) and version.isdigit():
                (entries if suffix == ENTRY else checkpoints).append(int(version))
            else:
                others.append(entry.name)
    return LogListing(directory, tuple(sorted(entries)), tuple(sorted(checkpoints)), tuple(sorted(others)))


def stages(checkpoint: int, newest: int) -> range:
    """Far behind: the versions to write checkpoints at, so that none stands behind too many entries."""
    return range(max(checkpoint, 0) + STEP, newest + 1, STEP)


def behind(log: Path) -> int:
    """How many entries stand behind the newest checkpoint."""
    found = listing(log) if log.is_dir() else LogListing(log, (), (), ())
    return found.newest - found.checkpoint


def catch_up(log: Path, rest: Callable[[], None] = lambda: None, behind_max: int = 0) -> None:
    """Write the checkpoints that are missing, where more than ``behind_max`` entries stand behind the newest one.

    ``rest`` is called between two stages, and while somebody else does it; what it raises ends it.
    """
    if behind(log) <= max(behind_max, STEP - 1):
        return
    # Entries that go meanwhile are covered by a checkpoint; and a reader that may not write reads what there is.
    with suppress(FileNotFoundError, PermissionError), _locked(log.parent / _LOCK, rest):
        found = listing(log)
        before = found.checkpoint
        for version in stages(found.checkpoint, found.newest):
            _write(log, before, version)
            before = version
            rest()


def sweep(log: Path, rest: Callable[[], None] = lambda: None) -> None:
    """Remove what was left by a stage that was killed: its links keep entries on the disk that the log has let go."""
    stage = log.parent / STAGE
    if stage.is_dir():
        with suppress(PermissionError), _locked(log.parent / _LOCK, rest):
            shutil.rmtree(stage, ignore_errors=True)


def _write(log: Path, before: int, version: int) -> None:
    stage = log.parent / STAGE
    shutil.rmtree(stage, ignore_errors=True)
    (stage / log.name).mkdir(parents=True)
    try:
        names = [f"{number:020d}{ENTRY}" for number in range(max(before, 0), version + 1)]
        names += [f"{before:020d}{CHECKPOINT}"] if before >= 0 else []
        for name in names:
            _link(log / name, stage / log.name / name)
        DeltaTable(str(stage)).create_checkpoint()
        for name in (f"{version:020d}{CHECKPOINT}", "_last_checkpoint"):
            (stage / log.name / name).replace(log / name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _link(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(path, to)


@contextmanager
def _locked(path: Path, rest: Callable[[], None]) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                rest()
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)
