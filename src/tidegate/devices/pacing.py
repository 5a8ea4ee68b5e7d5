"""When a device may send its next message: at most once per interval in force.

The interval in force is the device's default, or what it was advised until that advice lapses; advice never makes a
device send more often than its default. Time comes in as ``now_s``, on any clock that only grows.

Devices that hear the same advice at the same moment must not send in step afterwards. So when the interval changes, the
next message is put at a random place in the new interval, and the following ones keep that phase. A message that left
late takes at most ``CATCH_UP`` of the interval back from the next one: a device returns to its phase after a pause, and
never sends a burst.
"""

import math
import random

from tidegate.model.advice import Advice

CATCH_UP = 0.1


class Pacing:
    """The sending times of one device. ``spread`` draws the phases."""

    def __init__(self, default_interval_s: float, spread: random.Random) -> None:
        if not 0 < default_interval_s < math.inf:
            raise ValueError(f"a default interval of {default_interval_s} s: expected more than 0")
        self._default_s = default_interval_s
        self._spread = spread
        self._interval_s = default_interval_s
        self._lapses_s = math.inf
        self._due_s = self._sent_s = -math.inf

    def interval_s(self, now_s: float) -> float:
        """The interval in force."""
        self._let_lapse(now_s)
        return self._interval_s

    def due_s(self, now_s: float) -> float:
        """The next message may go where this is not later than now; else ask again then, advice may have lapsed."""
        self._let_lapse(now_s)
        return min(self._due_s, self._lapses_s)

    def advise(self, advice: Advice, now_s: float) -> None:
        """Advice takes effect for the very next message, and for its lifetime from now."""
        self._let_lapse(now_s)
        self._change(max(self._default_s, advice.interval_s), now_s)
        self._lapses_s = now_s + advice.lifetime_s

    def sent(self, now_s: float) -> None:
        """A message left now."""
        self._sent_s = now_s
        self._due_s = max(self._due_s + self._interval_s, now_s + (1 - CATCH_UP) * self._interval_s)

    def _let_lapse(self, now_s: float) -> None:
        if now_s >= self._lapses_s:
            self._change(self._default_s, self._lapses_s)
            self._lapses_s = math.inf

    def _change(self, interval_s: float, now_s: float) -> None:
        if interval_s == self._interval_s:
            return
        earliest_s = self._sent_s + min(interval_s, self._interval_s)
        self._due_s = max(earliest_s, now_s + self._spread.random() * interval_s)
        self._interval_s = interval_s
