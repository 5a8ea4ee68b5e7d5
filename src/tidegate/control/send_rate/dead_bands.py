"""Dead bands for event-driven devices: how much wider they report, in place of an interval.

A device that sends on change sends less often when its band is wider; how much less depends on what it measures::

    rate = demand * band ** -gamma           gamma 2 for a random walk, 1 for a steady drift

The first band assumes a random walk: sqrt(demand / wanted). After that it follows what arrives::

    band *= sqrt(measured / wanted)

which converges for any gamma between 0 and 4. It is a step per ``pause_s``, not per round: devices hear of a band with
their next message, and a rate shows it a window later; a faster step would act on what cannot have shown yet. A step is
at most a factor 2, and a band at most 10^4.
"""

import math

import msgspec

BAND_MAX = 1e4
STEP_MAX = 2.0


class Band(msgspec.Struct, frozen=True, array_like=True):
    width: float
    set_at_s: float


def widened(before: Band | None, *, at_s: float, demand: float, wanted: float, measured: float, pause_s: float) -> Band:
    """The band from now on. Rates are per device; ``measured`` is what arrives under the band so far."""
    if before is None or before.set_at_s > at_s:
        return Band(_bounded(math.sqrt(demand / wanted)), at_s)
    if at_s - before.set_at_s < pause_s or measured <= 0:
        return before
    step = min(STEP_MAX, max(1.0 / STEP_MAX, math.sqrt(measured / wanted)))
    return Band(_bounded(before.width * step), at_s)


def rate(demand: float, width: float) -> float:
    """What a device sends under this band, if what it measures is a random walk."""
    return demand / width**2


def _bounded(width: float) -> float:
    return min(BAND_MAX, max(1.0, width))
