"""When an event-driven device sends: on change, and now and then where nothing changes.

A sample is worth a message where it differs from the last sample that was sent by at least the width in force: the
device's own dead band, times the advised factor until that advice lapses. Samples in between are left to whoever
combines them; they ride with the next message. Time comes in as ``now_s``, on any clock that only grows.

What counts is the sample, not the moment at which a width changes: when advice lapses for a whole fleet at once, each
device reports at its own next sample, and the fleet does not send in step. For the same reason the pause after which a
device reports that nothing changed is drawn anew each time, from the second half of ``silence_s_max``.
"""

import math
import random

from tidegate.model.advice import Advice

SILENCE_S_MAX = 60.0
NARROW = 1.02  # a factor below this is none


class DeadBand:
    """The sending times of one device. ``spread`` draws the pauses."""

    def __init__(
        self,
        width: float,
        spread: random.Random,
        *,
        silence_s_max: float = SILENCE_S_MAX,
        device_class: str | None = None,
    ) -> None:
        if not 0 < width < math.inf:
            raise ValueError(f"a dead band of {width}: expected more than 0")
        if not 0 < silence_s_max < math.inf:
            raise ValueError(f"a silence of {silence_s_max} s: expected more than 0")
        self._width = width
        self._spread = spread
        self._silence_s_max = silence_s_max
        self._device_class = device_class
        self._factor = 1.0
        self._lapses_s = math.inf
        self._half_life_s = 0.0
        self._latest = math.nan
        self._last_sent: float | None = None
        self._has_changed = False
        self._speaks_s = -math.inf  # the end of its silence, changed or not

    def width(self, now_s: float) -> float:
        """The width in force."""
        while now_s >= self._lapses_s:
            half = 1.0 + (self._factor - 1.0) / 2
            goes_on = self._half_life_s > 0 and half > NARROW
            self._lapses_s = self._lapses_s + self._half_life_s if goes_on else math.inf
            self._factor = half if goes_on else 1.0
        return self._width * self._factor

    def advise(self, advice: Advice, now_s: float) -> None:
        """Advice takes effect for the very next sample, and for its lifetime from now."""
        self._factor = advice.dead_band_of(self._device_class)
        self._lapses_s, self._half_life_s = now_s + advice.lifetime_s, advice.half_life_s

    def sampled(self, value: float, now_s: float) -> bool:
        """Whether a message is due: this sample differs enough, or an earlier one did that could not be sent yet."""
        self._latest = value
        if self._last_sent is None or abs(value - self._last_sent) >= self.width(now_s):
            self._has_changed = True
        return self._has_changed

    def due_s(self, _now_s: float) -> float:
        """A message may go where this is not later than now and samples wait."""
        return -math.inf if self._has_changed else self._speaks_s

    def sent(self, now_s: float) -> None:
        """A message left now, with every sample so far."""
        self._last_sent = self._latest
        self._has_changed = False
        self._speaks_s = now_s + self._spread.uniform(0.5, 1.0) * self._silence_s_max
