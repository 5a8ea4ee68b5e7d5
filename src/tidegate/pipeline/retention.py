"""Removing from the log what every job has committed. Late is harmless, early is not."""

import os

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.bus.client import Bus
from tidegate.bus.documents import JOBS
from tidegate.model.installation import Installation
from tidegate.model.positions import sequence_of


class Retention:
    """Called from the thread that waits for the query: nothing that has to be on time waits for this."""

    def __init__(self, installation: Installation, name: str, every_s: float, now_s: float, *, fsync: bool) -> None:
        self._bus = Bus(installation.control_urls, name=f"{name}-retention")
        self._log = open_log(address_of_log(installation), name=f"{name}-retention")
        self._every_s = every_s
        self._fsync = fsync
        self._due_s = now_s + every_s

    def purge_if_due(self, committed: dict[int, int], now_s: float) -> bool:
        """Whether it was due, and worked."""
        if not committed or now_s < self._due_s:
            return False
        self._due_s = now_s + self._every_s
        safe = below_every_job(committed, list(self._bus.all(JOBS).values()))
        if self._fsync:
            os.sync()  # what is purged must not depend on a write that is still in memory
        self._log.purge({slice_: sequence_of(place) for slice_, place in safe.items()})
        return True

    def close(self) -> None:
        self._bus.close()
        self._log.close()


def below_every_job(committed: dict[int, int], others: list[dict[int, int]]) -> dict[int, int]:
    """Per slice the lowest offset that any job has committed; a job that does not name a slice does not read it."""
    return {
        slice_: min([offset, *(job[slice_] for job in others if slice_ in job)]) for slice_, offset in committed.items()
    }
