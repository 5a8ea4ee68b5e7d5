"""Advice: how often a device may send, for a while.

A JSON document, ``{"interval_s": 1.5, "lifetime_s": 10}``, stands on the control bus (document ``advice``); a gateway
puts it behind a device's acknowledgement, with what is left of its lifetime. It is a lease: who hears nothing newer for
that long returns to the default.

Where classes of devices are treated differently, ``classes`` has the interval of each by its name, and ``dead_bands``
the factor by which event-driven devices widen the change they report. A device knows its own class; for one that is not
named, and for a device without a class, ``interval_s`` counts.
"""

from typing import Annotated

import msgspec

# A device subscribes to this topic to be advised. No broker ever sees it: gateways answer for it.
ADVICE_TOPIC = "tidegate/advice"
INTERVAL_S_MAX = 3600.0
RATE_PER_S_MIN = 1.0 / INTERVAL_S_MAX  # who is told to be silent can never be told otherwise

_Interval = Annotated[float, msgspec.Meta(ge=0, le=INTERVAL_S_MAX)]
_DeadBand = Annotated[float, msgspec.Meta(ge=1, le=1e6)]
_Lifetime = Annotated[float, msgspec.Meta(gt=0, le=INTERVAL_S_MAX)]


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``interval_s`` is the least time between two messages of a device; 0 leaves it to the device's default."""

    interval_s: _Interval
    lifetime_s: _Lifetime
    classes: dict[str, _Interval] = {}
    dead_bands: dict[str, _DeadBand] = {}

    def interval_of(self, device_class: str | None) -> float:
        return self.interval_s if device_class is None else self.classes.get(device_class, self.interval_s)

    def dead_band_of(self, device_class: str | None) -> float:
        return 1.0 if device_class is None else self.dead_bands.get(device_class, 1.0)
