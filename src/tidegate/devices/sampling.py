"""When which device of a fleet takes its next sample: one heap for all of them, and no clock of its own."""

import heapq
import math
from collections.abc import Iterator

# Beyond this much delay against its own schedule a fleet is late.
LATE_S_MAX = 0.5


class Sampling:
    """Devices by number, each sampling every ``interval_s`` at its own phase, counted from ``start_s``."""

    def __init__(self, interval_s: float, start_s: float) -> None:
        self.late, self.late_s_max = 0, 0.0
        self._interval_s = interval_s
        self._start_s = start_s
        self._due_s: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def begin(self, index: int, phase_s: float, now_s: float) -> None:
        """The device samples from now on, at the phase of the whole run however often it went away."""
        first_s, interval_s = self._start_s + phase_s, self._interval_s
        due_s = first_s + max(0, math.ceil((now_s - first_s) / interval_s)) * interval_s
        self._due_s[index] = due_s
        heapq.heappush(self._heap, (due_s, index))

    def end(self, index: int) -> None:
        del self._due_s[index]

    def __contains__(self, index: int) -> bool:
        return index in self._due_s

    def __iter__(self) -> Iterator[int]:
        return iter(self._due_s)

    def take(self, now_s: float) -> int | None:
        """A device whose sample is due; None where none is."""
        heap = self._heap
        while heap and heap[0][0] <= now_s:
            due_s, index = heap[0]
            if self._due_s.get(index) != due_s:  # it went away meanwhile, and may have come back since
                heapq.heappop(heap)
                continue
            self._due_s[index] = due_s + self._interval_s
            heapq.heapreplace(heap, (due_s + self._interval_s, index))
            self.late += now_s - due_s > LATE_S_MAX
            self.late_s_max = max(self.late_s_max, now_s - due_s)
            return index
        return None
