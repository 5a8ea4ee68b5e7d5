"""Removing from the log what every job has committed. Late is harmless, early is not."""

import os
import time

from tidegate.brokers.nats.ingest import purge_committed
from tidegate.bus.assignments import Assignments
from tidegate.bus.knowledge import Knowledge
from tidegate.bus.wire import Wire
from tidegate.model.installation import Installation


class Retention:
    """Called from the thread that waits for the query: nothing that has to be on time waits for this."""

    def __init__(self, installation: Installation, name: str, every_s: float, *, fsync: bool) -> None:
        self._control = Wire(installation.control_urls, name=f"{name}-retention")
        self._data = Wire(installation.data_urls, name=f"{name}-retention")
        self._assignments = Assignments(Knowledge(self._control), installation.slices)
        self._every_s = every_s
        self._fsync = fsync
        self._due = time.monotonic() + every_s

    def purge_if_due(self, committed: dict[int, int]) -> None:
        if not committed or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every_s
        safe = below_every_job(committed, self._assignments.job_offsets())
        if self._fsync:
            os.sync()  # what is purged must not depend on a write that is still in memory
        purge_committed(self._data, safe)

    def close(self) -> None:
        self._control.close()
        self._data.close()


def below_every_job(committed: dict[int, int], others: list[dict[int, int]]) -> dict[int, int]:
    """Per slice the lowest offset that any job has committed; a job that does not name a slice does not read it."""
    return {
        slice_: min([offset, *(job[slice_] for job in others if slice_ in job)]) for slice_, offset in committed.items()
    }
