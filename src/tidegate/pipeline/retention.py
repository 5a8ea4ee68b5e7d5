"""Removing from the log what every job has committed. Late is harmless, early is not."""

import os

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.bus.client import Bus
from tidegate.bus.documents import JOBS, NODE_LEASES
from tidegate.model.installation import Installation
from tidegate.pipeline.jobs import JobBook, Kept, below_every_job
from tidegate.pipeline.settings import NodeSettings


class Retention:
    """Called from the thread that waits for the query: nothing that has to be on time waits for this."""

    def __init__(self, installation: Installation, settings: NodeSettings, now_s: float, *, fsync: bool) -> None:
        self._name = settings.name
        self._bus = Bus(installation.control_urls, name=f"{settings.name}-retention")
        self._log = open_log(address_of_log(installation), name=f"{settings.name}-retention")
        self._book = JobBook(settings.job_silent_s_max)
        self._every_s = settings.purge_s
        self._fsync = fsync
        self._due_s = now_s + settings.purge_s

    def purge_if_due(self, committed: dict[int, int], now_s: float) -> tuple[str, ...] | None:
        """What is wrong with jobs, in sentences, where it was due and worked; None where it was not due."""
        if not committed or now_s < self._due_s:
            return None
        self._due_s = now_s + self._every_s
        kept = self._kept(now_s)
        if not kept.everything:
            if self._fsync:
                os.sync()  # what is purged must not depend on a write that is still in memory
            self._log.purge(below_every_job(committed, kept.jobs))
        return kept.alarms

    def _kept(self, now_s: float) -> Kept:
        entries = {name: entry for name in self._bus.names(JOBS) if (entry := self._bus.entry(JOBS, name)) is not None}
        # The node's own lease is renewed all the time: when the bus stored it is the bus's time, or a little less.
        lease = self._bus.entry(NODE_LEASES, self._name) if entries else None
        return self._book.read(entries, lease.written_s if lease is not None else None, now_s)

    def close(self) -> None:
        self._bus.close()
        self._log.close()
