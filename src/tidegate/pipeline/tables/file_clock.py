"""What time it is for files: their ages are counted by the clock that stamps them, and by no other."""

import os
import time
from pathlib import Path


def file_clock_s(directory: Path) -> float:
    """The time by the clock that stamps files there, which is not that of this process when somebody set that one."""
    probe = directory / f"_clock-{os.getpid()}-{time.monotonic_ns()}"
    probe.touch()
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
