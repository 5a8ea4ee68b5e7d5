"""What a device keeps while it has to wait: samples are combined, never discarded.

An aggregate is one value, however many samples it stands for. Its sum is an exact fraction, so the mean is the float
nearest to the true one and does not depend on how the samples were grouped on the way.
"""

from fractions import Fraction

import msgspec

from tidegate.model.readings import VALUE_ABS_MAX, Reading, is_storable


class Aggregate(msgspec.Struct, frozen=True, gc=False):
    """At least one sample. ``first_s`` and ``last_s`` are the earliest and the latest time, seconds since the epoch."""

    count: int
    total: Fraction
    min: float
    max: float
    first_s: float
    last_s: float

    @classmethod
    def of(cls, value: float, time_s: float) -> "Aggregate":
        if not is_storable(value):
            raise ValueError(f"a sample of {value}: expected a number within ±{VALUE_ABS_MAX:g}")
        return cls(1, Fraction(value), value, value, time_s, time_s)

    def merged(self, other: "Aggregate") -> "Aggregate":
        return Aggregate(
            self.count + other.count,
            self.total + other.total,
            min(self.min, other.min),
            max(self.max, other.max),
            # A clock that was set back must not make a reading that contradicts itself.
            min(self.first_s, other.first_s),
            max(self.last_s, other.last_s),
        )

    def reading(self, boot: int, seq: int) -> Reading:
        """The message that stands for all samples; identity is given at sending."""
        if self.count == 1:
            return Reading(value=self.max, boot=boot, seq=seq, time=self.last_s)
        return Reading(
            value=float(self.total / self.count),
            boot=boot,
            seq=seq,
            time=self.last_s,
            count=self.count,
            min=self.min,
            max=self.max,
            first=self.first_s,
            last=self.last_s,
        )
