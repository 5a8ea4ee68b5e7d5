"""What a device has to tell, by time: one sample per default interval, or the moments of a recording."""

import bisect
import math
from collections.abc import Sequence
from typing import Protocol

_ROUNDING = 1e-9


class Samples(Protocol):
    """Samples in the order of their times; those not yet sent begin at ``next_s``."""

    @property
    def next_s(self) -> float:
        """When the first unsent sample is taken, past or future; without bound where none is left."""

    @property
    def is_over(self) -> bool:
        """Whether everything there will ever be is sent."""

    def begin(self, now_s: float) -> None:
        """The device connects: what lies before now was never taken."""

    def take(self, now_s: float) -> tuple[int, float]:
        """How many unsent samples there are by now, and the middle of their times. They are sent from here on."""

    def until(self, now_s: float) -> int:
        """How many samples were taken since the device connected, sent or not, before now."""


class GridSamples:
    """One sample every ``interval_s``, at the same phase for the whole run however often the device goes away."""

    def __init__(self, phase_s: float, interval_s: float) -> None:
        self._phase_s, self._interval_s = phase_s, interval_s
        self._first = self._next = 0

    @property
    def next_s(self) -> float:
        return self._phase_s + self._next * self._interval_s

    @property
    def is_over(self) -> bool:
        return False

    def begin(self, now_s: float) -> None:
        self._first = self._next = self._index(now_s)

    def take(self, now_s: float) -> tuple[int, float]:
        after = math.floor((now_s - self._phase_s) / self._interval_s + _ROUNDING) + 1
        count, middle = after - self._next, (self._next + after - 1) / 2
        self._next = after
        return count, self._phase_s + middle * self._interval_s

    def until(self, now_s: float) -> int:
        return max(0, self._index(now_s) - self._first)

    def _index(self, now_s: float) -> int:
        """Of the first sample that is not before now."""
        return max(0, math.ceil((now_s - self._phase_s) / self._interval_s - _ROUNDING))


class RecordedSamples:
    """Samples at the times of a recording, in order."""

    def __init__(self, times_s: Sequence[float]) -> None:
        self._times_s = times_s
        self._next = 0

    @property
    def next_s(self) -> float:
        return math.inf if self.is_over else self._times_s[self._next]

    @property
    def is_over(self) -> bool:
        return self._next == len(self._times_s)

    def begin(self, now_s: float) -> None:
        """A recorded device connects with its first sample and loses none."""

    def take(self, now_s: float) -> tuple[int, float]:
        first = self._next
        while self._next < len(self._times_s) and self._times_s[self._next] <= now_s:
            self._next += 1
        taken = self._times_s[first : self._next]
        return len(taken), sum(taken) / len(taken)

    def until(self, now_s: float) -> int:
        return len(self._times_s) if self.is_over else bisect.bisect_left(self._times_s, now_s)
