"""The slice assignment and the nodes' leases, kept on the control bus."""

from collections.abc import Callable, Mapping

import msgspec

from tidegate.bus.knowledge import Knowledge
from tidegate.control.slicing.transfer import Assignment, Change, all_free

_KEY = "slices"
_LEASE = "lease"
_PROGRESS = "progress"
_JOBS = "jobs"


class Assignments:
    """Reads and changes who owns what. Every change is one compare-and-set of one document.

    ``slices`` is how many there are while nobody has owned one yet; who only moves them need not know.
    """

    def __init__(self, knowledge: Knowledge, slices: int = 0) -> None:
        self._knowledge = knowledge
        self._slices = slices

    def current(self) -> Assignment:
        entry = self._knowledge.get(_KEY)
        return _decode(entry.value) if entry else all_free(self._slices)

    def change(self, step: Callable[[Assignment], Assignment]) -> Assignment:
        """Apply a pure step to the assignment until nobody interferes; return the assignment as it then is."""

        def apply(document: bytes | None) -> bytes | None:
            before = _decode(document) if document is not None else all_free(self._slices)
            after = step(before)
            return None if after == before else msgspec.json.encode(after)

        stored = self._knowledge.change(_KEY, apply)
        return _decode(stored) if stored is not None else all_free(self._slices)

    def move(self, slice_: int, taker: str) -> str | None:
        """Ask for a slice to be moved; None if that was accepted, else why not."""
        return self.move_all({slice_: taker}).get(slice_)

    def move_all(self, takers: Mapping[int, str]) -> dict[int, str]:
        """Ask for several slices to be moved, all at once; the refused ones, and why."""
        refusals: dict[int, str] = {}

        def step(assignment: Assignment) -> Assignment:
            refusals.clear()
            alive = self.alive()
            for slice_, taker in takers.items():
                after = assignment.request(slice_, taker, alive)
                if isinstance(after, str):
                    refusals[slice_] = after
                else:
                    assignment = after
            return assignment

        self.change(step)
        return refusals

    def adopt_orphans(self) -> tuple[Change, ...]:
        changes: tuple[Change, ...] = ()

        def step(before: Assignment) -> Assignment:
            nonlocal changes
            after, changes = before.adopt(self.alive())
            return after

        self.change(step)
        return changes

    def alive(self) -> list[str]:
        return self._knowledge.keys(_LEASE)

    def renew_lease(self, node: str, incarnation: str, revision: int | None, lease_s: float) -> int | None:
        """Hold or renew a node's lease; None if another incarnation of the node has it."""
        if revision is not None:
            renewed = self._knowledge.put(f"{_LEASE}.{node}", incarnation.encode(), revision=revision, lease_s=lease_s)
            if renewed is not None:
                return renewed
        held = self._knowledge.get(f"{_LEASE}.{node}")
        if held is not None:
            return None
        return self._knowledge.put(f"{_LEASE}.{node}", incarnation.encode(), revision=0, lease_s=lease_s)

    def end_lease(self, node: str) -> None:
        self._knowledge.delete(f"{_LEASE}.{node}")

    def job_offsets(self) -> list[dict[int, int]]:
        """What other jobs that read the slices have committed: nothing above may be removed from the log.

        A job keeps a document ``jobs.<name>`` that maps each slice it reads to its committed offset.
        """
        entries = (self._knowledge.get(f"{_JOBS}.{name}") for name in self._knowledge.keys(_JOBS))
        return [msgspec.json.decode(entry.value, type=dict[int, int]) for entry in entries if entry]

    def publish_progress(self, node: str, document: bytes) -> None:
        self._knowledge.put(f"{_PROGRESS}.{node}", document)

    def progress(self, node: str) -> bytes | None:
        entry = self._knowledge.get(f"{_PROGRESS}.{node}")
        return entry.value if entry else None


def _decode(document: bytes) -> Assignment:
    return msgspec.json.decode(document, type=Assignment)
