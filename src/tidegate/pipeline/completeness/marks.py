"""Up to which report of the gateways a slice is settled: whatever those acknowledged has had its chance. Pure.

What a report names was acknowledged before the report was written. So when the log is measured after the report was
read, every reading of it lies, in its slice, at or below the slice's end then plus all that had not reached its slice.
Once the tables have passed that place nothing of the report can still come. No clock is involved.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

# A slice that stands still for hours needs no mark every few seconds.
MARKS_MAX = 256


class Mark(NamedTuple):
    report: int
    place: int


class Settling:
    """``settled``: per slice, the last report of which nothing can still come."""

    def __init__(self, settled: Mapping[int, int] | None = None) -> None:
        self.settled: dict[int, int] = dict(settled or {})
        self._marks: dict[int, deque[Mark]] = {}

    def measured(self, report: int, places: Mapping[int, int]) -> None:
        """All that reports up to this one acknowledged lies at or below these places."""
        for slice_, place in places.items():
            marks = self._marks.setdefault(slice_, deque())
            # A later mark that is no farther says more than those before it.
            while marks and marks[-1].place >= place:
                marks.pop()
            marks.append(Mark(report, place))
            if len(marks) > MARKS_MAX:
                self._marks[slice_] = deque(mark for number, mark in enumerate(marks) if number % 2)

    def read(self, positions: Mapping[int, int]) -> None:
        """The tables have been read up to these places."""
        for slice_, position in positions.items():
            marks = self._marks.get(slice_)
            while marks and marks[0].place <= position:
                self.settled[slice_] = max(self.settled.get(slice_, 0), marks.popleft().report)
