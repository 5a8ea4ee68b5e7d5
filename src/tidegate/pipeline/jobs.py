"""Other jobs that read the slices: which of them still keep readings in the log. No clock, no IO.

A job says how far it is in a document of its own. One that cannot be read counts as it did when this node last could;
if it never could, it keeps everything. A job that has been silent for very long keeps nothing any more, whatever its
document says. Its silence is measured by the bus's clock, between two documents that the bus stored; and it must also
have been silent for a while before this node's eyes, because a job that lives writes every few moments, however the
bus's clock has leapt.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidegate.bus.documents import JOBS
from tidegate.bus.key_value import Entry
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.positions import sequence_of

WATCHED_S = 600.0
DAY_S = 86_400.0


class Kept(NamedTuple):
    """What has to stay in the log: per job the offset that it has committed of each slice; or all of it."""

    jobs: tuple[dict[int, int], ...]
    everything: bool
    alarms: tuple[str, ...]


class _Watched(NamedTuple):
    revision: int
    since_s: float  # by this node's own clock


class JobBook:
    """What one node knows of the jobs."""

    def __init__(self, silent_s_max: float) -> None:
        self._silent_s_max = silent_s_max
        self._good: dict[str, dict[int, int]] = {}
        self._watched: dict[str, _Watched] = {}

    def read(self, entries: Mapping[str, Entry], bus_now_s: float | None, now_s: float) -> Kept:
        """All documents there are now; ``bus_now_s`` is the bus's time, None where it is not known."""
        self._good = {name: good for name, good in self._good.items() if name in entries}
        self._watched = {name: self._watch(name, entry, now_s) for name, entry in entries.items()}
        jobs, alarms, everything = [], [], False
        for name, entry in entries.items():
            silent_s = bus_now_s - entry.written_s if bus_now_s is not None else 0.0
            watched_s = now_s - self._watched[name].since_s
            if silent_s > self._silent_s_max and watched_s >= min(WATCHED_S, self._silent_s_max):
                alarms.append(expired_sentence(name, silent_s))
                continue
            try:
                self._good[name] = JOBS.decode(entry.value, name)
            except DamagedDocumentError as error:
                alarms.append(str(error))
            if name in self._good:
                jobs.append(self._good[name])
            else:
                everything = True
        return Kept(tuple(jobs), everything, tuple(alarms))

    def _watch(self, name: str, entry: Entry, now_s: float) -> _Watched:
        before = self._watched.get(name)
        return before if before is not None and before.revision == entry.revision else _Watched(entry.revision, now_s)


def expired_sentence(name: str, silent_s: float) -> str:
    return (
        f"The job {name} has not written {JOBS.key_of(name)!r} for {silent_s / DAY_S:.1f} days, so it no longer keeps "
        f"readings in the log: start it again, and it counts from its next word; or 'tidegate jobs --forget {name}'."
    )


def below_every_job(committed: Mapping[int, int], others: tuple[dict[int, int], ...]) -> dict[int, int]:
    """Per slice the lowest sequence that any job has committed; a job that does not name a slice does not read it.

    Compared as sequences, not as positions: one job may not have noticed yet that the log was set back.
    """
    return {
        slice_: min(sequence_of(place) for place in (place, *(job[slice_] for job in others if slice_ in job)))
        for slice_, place in committed.items()
    }
