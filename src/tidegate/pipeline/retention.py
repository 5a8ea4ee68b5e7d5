"""Removing from the log what every job has committed. Late is harmless, early is not."""

import os
from collections.abc import Collection
from pathlib import Path

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.bus.client import Bus
from tidegate.bus.documents import JOBS, NODE_LEASES
from tidegate.model.installation import Installation
from tidegate.model.positions import sequence_of
from tidegate.pipeline.jobs import JobBook, Kept, below_every_job
from tidegate.pipeline.settings import NodeSettings
from tidegate.pipeline.sources.rows import mark_in_log
from tidegate.pipeline.tables.tables import Tables


class Retention:
    """Called from the thread that waits for the query: nothing that has to be on time waits for this."""

    def __init__(self, installation: Installation, settings: NodeSettings, now_s: float, *, fsync: bool) -> None:
        self._name = settings.name
        self._bus = Bus(installation.control_urls, name=f"{settings.name}-retention")
        self._log = open_log(address_of_log(installation), name=f"{settings.name}-retention")
        self._readings = Tables(Path(installation.tables)).readings
        self._book = JobBook(settings.job_silent_s_max)
        self._every_s = settings.purge_s
        self._fsync = fsync
        self._due_s = now_s + settings.purge_s

    def purge_if_due(self, slices: Collection[int], now_s: float) -> tuple[str, ...] | None:
        """What keeps readings in the log, in sentences, where it was due and worked; None where it was not due."""
        if not slices or now_s < self._due_s:
            return None
        self._due_s = now_s + self._every_s
        kept = self._kept(now_s)
        if kept.everything:
            return kept.alarms
        proven, doubts = self._proven(slices)
        if self._fsync:
            os.sync()  # what is purged must not depend on a write that is still in memory
        self._log.purge(below_every_job(proven, kept.jobs))
        return (*kept.alarms, *doubts)

    def _proven(self, slices: Collection[int]) -> tuple[dict[int, int], list[str]]:
        """Where the tables have each slice, if its log has the message there that they read; a sentence where not.

        A log that was set back and has grown since holds new readings under sequences that the tables had long ago.
        """
        self._readings.refresh()
        proven, doubts = {}, []
        for slice_, span in self._log.spans(sorted(slices)).items():
            place, mark = self._readings.position(slice_).offset, self._readings.mark(slice_)
            if mark is None or sequence_of(place) < span.first:
                continue  # nothing of this log was read, or everything that was is gone
            if mark_in_log(self._log, slice_, place, span) == mark:
                proven[slice_] = place
            else:
                doubts.append(
                    f"Slice {slice_} no longer has the message that was read at {sequence_of(place)}: nothing is "
                    "removed from its log until a node has taken the slice up anew."
                )
        return proven, doubts

    def _kept(self, now_s: float) -> Kept:
        entries = {name: entry for name in self._bus.names(JOBS) if (entry := self._bus.entry(JOBS, name)) is not None}
        # The node's own lease is renewed all the time: when the bus stored it is the bus's time, or a little less.
        lease = self._bus.entry(NODE_LEASES, self._name) if entries else None
        return self._book.read(entries, lease.written_s if lease is not None else None, now_s)

    def close(self) -> None:
        self._bus.close()
        self._log.close()
