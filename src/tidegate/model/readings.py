"""A reading: what a device measured, and the identity that makes it storable exactly once.

The device is the second level of the topic (``telemetry/<device>``), so that a slice, which is a function of
that level, sees every copy of a device's readings. The payload is a JSON object::

    {"boot": 3, "seq": 1234, "time": 1763247600.125, "value": 21.5}

and, when one message stands for several readings, their mean as ``value`` and ``count``, ``min``, ``max``,
``first`` and ``last`` beside it. Times are seconds since the epoch. ``boot`` and ``seq`` come together or not at
all: without them a reading has no identity, is stored at least once, and is marked so.
"""

import math
from typing import Annotated

import msgspec

TELEMETRY = "telemetry"
PAYLOAD_BYTES_MAX = 65_536
# So much of a payload that is no reading is kept: one that is no longer can still be told by its identity.
IDENTIFIED_BYTES = 1_024
# Sums are kept in millionths as integers: a value beyond this no longer fits one.
VALUE_ABS_MAX = 9.0e12
COUNT_MAX = 1_000_000_000
# 1970 to 2262: what a 64-bit count of nanoseconds can name.
TIME_S_MAX = 9_000_000_000.0

NATURAL_MAX = 2**62
Natural = Annotated[int, msgspec.Meta(ge=0, le=NATURAL_MAX)]
Count = Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=TIME_S_MAX)]
Value = Annotated[float, msgspec.Meta(ge=-VALUE_ABS_MAX, le=VALUE_ABS_MAX)]


class Reading(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One payload, decoded and checked. Unknown keys are allowed: devices may say more than has a column."""

    value: Value
    boot: Natural | None = None
    seq: Natural | None = None
    time: Seconds | None = None
    count: Count = 1
    min: Value | None = None
    max: Value | None = None
    first: Seconds | None = None
    last: Seconds | None = None

    def contradiction(self) -> str | None:
        """What the fields say against each other, or None. Types and ranges are checked by the decoder."""
        if (self.boot is None) != (self.seq is None):
            return "boot and seq come together or not at all"
        if self.count == 1:
            return None
        low, high = self.min, self.max
        if low is not None and high is not None and not low <= self.value <= high:
            return "value is outside min and max"
        if self.first is not None and self.last is not None and self.first > self.last:
            return "first is later than last"
        return None


class KnownFieldsOnly(Reading, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A reading that says nothing beyond its fields."""


class Identified(msgspec.Struct, frozen=True, gc=False):
    """Nothing of a payload but its identity, unchecked: what is read where a whole reading would cost too much."""

    boot: int = -1
    seq: int = -1

    @property
    def is_complete(self) -> bool:
        """Whether a reading may have this identity."""
        return 0 <= self.boot <= NATURAL_MAX and 0 <= self.seq <= NATURAL_MAX


def is_storable(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= VALUE_ABS_MAX
