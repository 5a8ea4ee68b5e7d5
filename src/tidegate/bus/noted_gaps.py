"""The document of open gaps. A damaged one is written anew: that it cannot be read must keep nobody from reading on."""

from collections.abc import Callable

from tidegate.bus.client import Bus
from tidegate.bus.documents import GAPS
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.gaps import Gap, Gaps

SHOWN_BYTES_MAX = 500


def read_gaps(bus: Bus) -> tuple[Gaps, str | None]:
    """All open gaps; none, and what is wrong, where the document is damaged."""
    try:
        return bus.get(GAPS) or Gaps(), None
    except DamagedDocumentError as error:
        return Gaps(), str(error)


def note_gap(bus: Bus, gap: Gap) -> str | None:
    """Put the gap on the bus; a sentence where that replaced a damaged document."""
    return _change(bus, lambda before: before.with_(gap))


def close_gaps(bus: Bus, slices: frozenset[int]) -> str | None:
    """Take the gaps of these slices off; a sentence where that replaced a damaged document."""
    return _change(bus, lambda before: before.without(slices))


def _change(bus: Bus, step: Callable[[Gaps], Gaps]) -> str | None:
    while True:
        try:
            bus.change(GAPS, lambda before: step(before or Gaps()))
        except DamagedDocumentError:
            entry = bus.entry(GAPS)
            if entry is None or bus.put(GAPS, step(Gaps()), revision=entry.revision) is None:
                continue  # somebody else was quicker
            return (
                f"The document {GAPS.key!r} on the control bus was damaged and has been written anew; earlier gaps in "
                f"it are no longer known. It said: {entry.value[:SHOWN_BYTES_MAX]!r}"
            )
        return None
