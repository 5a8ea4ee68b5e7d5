"""Advice: how often a device may send, for a while.

A JSON document, ``{"interval_s": 1.5, "lifetime_s": 10}``, stands in the knowledge store (key ``advice``); a gateway
puts it behind a device's acknowledgement, with what is left of its lifetime. It is a lease: who hears nothing newer for
that long returns to the default.
"""

from typing import Annotated

import msgspec

ADVICE_KEY = "advice"
# A device subscribes to this topic to be advised. No broker ever sees it: gateways answer for it.
ADVICE_TOPIC = "tidegate/advice"
INTERVAL_S_MAX = 3600.0

_Interval = Annotated[float, msgspec.Meta(ge=0, le=INTERVAL_S_MAX)]
_Lifetime = Annotated[float, msgspec.Meta(gt=0, le=INTERVAL_S_MAX)]


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """``interval_s`` is the least time between two messages of a device; 0 leaves it to the device's default."""

    interval_s: _Interval
    lifetime_s: _Lifetime
