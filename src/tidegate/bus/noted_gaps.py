"""The document of open gaps. A damaged one is written anew: that it cannot be read must keep nobody from reading on."""

from collections.abc import Callable

from tidegate.bus.client import Bus
from tidegate.bus.documents import GAPS
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.gaps import Gap, Gaps

SHOWN_BYTES_MAX = 500


class NotedGaps:
    """Reads and changes what is open. A change returns a sentence where it replaced a damaged document."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> tuple[Gaps, str | None]:
        """All open gaps; none, and what is wrong, where the document is damaged."""
        try:
            return self._bus.get(GAPS) or Gaps(), None
        except DamagedDocumentError as error:
            return Gaps(), str(error)

    def note(self, gap: Gap) -> str | None:
        return self._change(lambda before: before.with_(gap))

    def close(self, slices: frozenset[int]) -> str | None:
        """Take the gaps of these slices off."""
        return self._change(lambda before: before.without(slices))

    def _change(self, step: Callable[[Gaps], Gaps]) -> str | None:
        while True:
            try:
                self._bus.change(GAPS, lambda before: step(before or Gaps()))
            except DamagedDocumentError:
                entry = self._bus.entry(GAPS)
                if entry is None or self._bus.put(GAPS, step(Gaps()), revision=entry.revision) is None:
                    continue  # somebody else was quicker
                return (
                    f"The document {GAPS.key!r} on the control bus was damaged and has been written anew; earlier gaps "
                    f"in it are no longer known. It said: {entry.value[:SHOWN_BYTES_MAX]!r}"
                )
            return None
