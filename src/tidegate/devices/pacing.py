"""When a device may send its next message: at most once per interval in force.

The interval in force is the device's default, or what its class was advised until that advice lapses; where it has a
half-life, the interval is then halved, again and again, until it is the default. Advice never makes a device send more
often than that. Time comes in as ``now_s``, on any clock that only grows.

Devices that hear the same advice must not send in step afterwards. So a device that has to slow down puts its next
message at a random place between the old and the new interval, and the following ones keep that phase: what was spread
over the old interval is spread over the new one. Devices whose advice lapses, all at the same moment, spread over their
default in the same way. A message that left
late takes at most ``CATCH_UP`` of the interval back from the next one: a device returns to its phase after a pause, and
never sends a burst.
"""

import math
import random

from tidegate.model.advice import Advice

CATCH_UP = 0.1


class Pacing:
    """The sending times of one device. ``spread`` draws the phases."""

    def __init__(self, default_interval_s: float, spread: random.Random, device_class: str | None = None) -> None:
        if not 0 < default_interval_s < math.inf:
            raise ValueError(f"a default interval of {default_interval_s} s: expected more than 0")
        self._default_s = default_interval_s
        self._spread = spread
        self._device_class = device_class
        self._interval_s = default_interval_s
        self._lapses_s = math.inf
        self._half_life_s = 0.0
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
        self._change(max(self._default_s, advice.interval_of(self._device_class)), now_s)
        self._lapses_s, self._half_life_s = now_s + advice.lifetime_s, advice.half_life_s

    def sent(self, now_s: float) -> None:
        """A message left now."""
        self._sent_s = now_s
        self._due_s = max(self._due_s + self._interval_s, now_s + (1 - CATCH_UP) * self._interval_s)

    def _let_lapse(self, now_s: float) -> None:
        while now_s >= self._lapses_s:
            lapsed_s, half_s = self._lapses_s, self._interval_s / 2
            goes_on = self._half_life_s > 0 and half_s > self._default_s
            self._lapses_s = lapsed_s + self._half_life_s if goes_on else math.inf
            self._change(half_s if goes_on else self._default_s, lapsed_s)

    def _change(self, interval_s: float, now_s: float) -> None:
        if interval_s == self._interval_s:
            return
        slower_s = max(0.0, interval_s - self._interval_s)
        self._due_s = self._sent_s + interval_s - slower_s * self._spread.random()
        if self._due_s < now_s:
            # Overdue by the new interval, as others are at the same moment: not all of them now.
            self._due_s = now_s + self._spread.random() * interval_s
        self._interval_s = interval_s
