"""Advice: how often a device may send, for a while.

A JSON document, ``{"interval_s": 1.5, "lifetime_s": 10}``, stands on the control bus (document ``advice``); a gateway
puts it behind a device's acknowledgement, with what is left of its lifetime. It is a lease: who hears nothing newer for
that long returns to the default, not at once but step by step: with ``half_life_s`` the interval is halved when the
lease is over, and again every half-life, until the default is reached. So a fleet is not let go in the middle of a
flood because nobody speaks to it for a moment.

Where classes of devices are treated differently, ``classes`` has the interval of each by its name, and ``dead_bands``
the factor by which event-driven devices widen the change they report. A device knows its own class; for one that is not
named, and for a device without a class, ``interval_s`` counts.
"""

from typing import Annotated

import msgspec

from tidegate.model.limits import LimitMet

# A device subscribes to this topic to be advised. No broker ever sees it: gateways answer for it.
ADVICE_TOPIC = "tidegate/advice"
INTERVAL_S_MAX = 3600.0
RATE_PER_S_MIN = 1.0 / INTERVAL_S_MAX  # who is told to be silent can never be told otherwise

_Interval = Annotated[float, msgspec.Meta(ge=0, le=INTERVAL_S_MAX)]
_DeadBand = Annotated[float, msgspec.Meta(ge=1, le=1e6)]
_Lifetime = Annotated[float, msgspec.Meta(gt=0, le=INTERVAL_S_MAX)]
_HalfLife = Annotated[float, msgspec.Meta(ge=0, le=INTERVAL_S_MAX)]
# After so many nothing worth keeping to is left.
HALVINGS = 6
LIFETIME_S_MIN = 1e-3  # that is left of it: a rounding must not make it none


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``interval_s`` is the least time between two messages of a device; 0 leaves it to the device's default."""

    interval_s: _Interval
    lifetime_s: _Lifetime
    classes: dict[str, _Interval] = {}
    dead_bands: dict[str, _DeadBand] = {}
    half_life_s: _HalfLife = 0.0  # 0: what has lapsed is over at once
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # of the devices, whom it is meant for
    limit: LimitMet | None = None  # that this very device has just met: a gateway's word to it

    @property
    def lasts_s(self) -> float:
        """Until nothing of it is left, if nobody says anything newer."""
        return self.lifetime_s + HALVINGS * self.half_life_s

    def halvings(self, passed_s: float) -> int:
        """How often it was halved so long after it was given; more than ``HALVINGS``: nothing is left of it."""
        over_s = passed_s - self.lifetime_s
        if over_s < 0:
            return 0
        return int(over_s // self.half_life_s) + 1 if self.half_life_s else HALVINGS + 1

    def after(self, passed_s: float) -> "Advice | None":
        """What is left of it so long after it was given; None where nothing is."""
        steps, left_s = self.halvings(passed_s), self.lifetime_s - passed_s
        if steps == 0:
            return msgspec.structs.replace(self, lifetime_s=max(left_s, LIFETIME_S_MIN))
        if steps > HALVINGS:
            return None
        share = 0.5**steps
        return msgspec.structs.replace(
            self,
            interval_s=self.interval_s * share,
            lifetime_s=max(left_s + steps * self.half_life_s, LIFETIME_S_MIN),
            classes={name: interval_s * share for name, interval_s in self.classes.items()},
            dead_bands={name: 1.0 + (band - 1.0) * share for name, band in self.dead_bands.items()},
        )

    def interval_of(self, device_class: str | None) -> float:
        return self.interval_s if device_class is None else self.classes.get(device_class, self.interval_s)

    def dead_band_of(self, device_class: str | None) -> float:
        return 1.0 if device_class is None else self.dead_bands.get(device_class, 1.0)
