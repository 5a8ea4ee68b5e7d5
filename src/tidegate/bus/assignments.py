"""Who owns which slice: one document, changed by compare-and-set alone."""

from collections.abc import Callable, Mapping

from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES, SLICES
from tidegate.control.slicing.transfer import Assignment, Change, all_free
from tidegate.model.errors import DamagedDocumentError


class Assignments:
    """Reads and changes who owns what. Every change is one compare-and-set of one document.

    ``slices`` is how many there are while nobody has owned one yet; a caller that only moves them need not know.
    """

    def __init__(self, bus: Bus, slices: int = 0) -> None:
        self._bus = bus
        self._slices = slices

    def current(self) -> Assignment:
        return self._bus.get(SLICES) or self.without_owners()

    def without_owners(self) -> Assignment:
        """As it is before anybody has owned a slice."""
        return all_free(self._slices)

    def change(self, step: Callable[[Assignment], Assignment]) -> Assignment:
        """Apply a pure step to the assignment until nobody interferes; return the assignment as it then is."""

        def apply(stored: Assignment | None) -> Assignment | None:
            before = stored if stored is not None else self.without_owners()
            after = step(before)
            return None if after == before else after

        return self._bus.change(SLICES, apply) or self.without_owners()

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
        """The processing nodes that hold their lease. One that cannot be read is nobody's."""
        return [name for name in self._bus.names(NODE_LEASES) if self._is_held(name)]

    def _is_held(self, node: str) -> bool:
        try:
            return self._bus.get(NODE_LEASES, node) is not None
        except DamagedDocumentError:
            return False
