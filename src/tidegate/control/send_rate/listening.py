"""What a class of devices sends now and will send: advice that was given and is not heard yet is counted.

A device hears advice with the acknowledgement of its own message. So right after a change most devices still keep to
what they heard before. The model holds *cohorts*: which share of the devices keeps to which rate. Between two messages
of a device that sends r times a second lies 1/r; a device met at a random moment sends, and hears, after 1/(2r) in the
mean, so cohorts empty at the rate 2r into the one that keeps to the newest advice::

    share_k(t + dt) = share_k(t) * exp(-2 r_k dt)

and what n devices send over the next H seconds, if they are told the rate a now, is linear in a::

    fixed + each * a,    fixed = n * sum_k share_k r_k E_k,   each = n * sum_k share_k (H - E_k),
                         E_k = (1 - exp(-2 r_k H)) / (2 r_k)     the time that cohort k still keeps to r_k

Regimes: just after a change E is near H for slow cohorts, and little can be changed; later all have heard, E = 0 counts
for nobody, and the devices send n * a. New devices begin at their own demand: nobody has told them anything.

``surplus_per_s`` is what arrives beyond the model: devices that do not listen, or send more than they did. It follows
what is measured slowly, and the share that is held never pays for less than nothing: it is at least 0.

Monitoring takes its time, and meanwhile devices come and go. So the number that was seen is carried on to now as it
went over the last ``TREND_S``, by half of it at most: a trend that has ended is believed for one delay too long.
"""

import math
from itertools import pairwise

import msgspec

COHORTS_MAX = 12
TREND_S = 5.0
# A rate that no device reaches: it keeps to its own demand. Finite, because states are written down as JSON.
UNHELD_PER_S = 1e9
SAME_RATE_SHARE = 0.01


class Cohort(msgspec.Struct, frozen=True, array_like=True):
    rate_per_s: float
    share: float


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """One class. ``demand_per_device`` is how often one of its devices would send if nobody held it."""

    devices: int = 0
    demand_per_device: float = 0.0
    cohorts: tuple[Cohort, ...] = ()
    surplus_per_s: float = 0.0
    counts: tuple[tuple[float, int], ...] = ()  # of the last TREND_S: when, how many devices

    def looked_at(self, measured_at_s: float, devices: int) -> "Listeners":
        """So many devices were there at that moment."""
        recent = [one for one in self.counts if measured_at_s - TREND_S <= one[0] < measured_at_s]
        return msgspec.structs.replace(self, counts=(*recent, (measured_at_s, devices)))

    def expected(self, at_s: float) -> int:
        """How many there are by now, if the number went on as it did; at most half more or less than was seen."""
        (from_s, first), (to_s, last) = self.counts[0], self.counts[-1]
        if to_s - from_s < TREND_S / 2:
            return last
        grown = (last - first) / (to_s - from_s) * (at_s - to_s)
        return round(last + max(-0.5 * last, min(0.5 * last, grown)))

    def counted_mean(self) -> float:
        """How many there were over the time that rates are counted over."""
        return sum(devices for _, devices in self.counts) / len(self.counts) if self.counts else 0.0

    def wants_per_s(self) -> float:
        """What would be sent if nobody were held. Who does not listen sends now what others leave out: not twice."""
        wanted = self.devices * self.demand_per_device
        left_out = wanted - (self.sends_per_s() - self.surplus_per_s)
        return wanted + max(0.0, self.surplus_per_s - left_out)

    def sends_per_s(self) -> float:
        """What arrives now, if the model is right."""
        return self.surplus_per_s + self.devices * sum(
            cohort.share * min(cohort.rate_per_s, self.demand_per_device) for cohort in self.cohorts
        )

    def counted(self, devices: int) -> "Listeners":
        """So many devices are there now; who is new keeps to its demand, who has left came from all cohorts alike."""
        fresh = Cohort(UNHELD_PER_S, 1.0)
        if devices <= 0 or not self.cohorts:
            return msgspec.structs.replace(self, devices=max(devices, 0), cohorts=(fresh,))
        if devices <= self.devices:
            return msgspec.structs.replace(self, devices=devices)
        stays = self.devices / devices
        cohorts = [Cohort(cohort.rate_per_s, cohort.share * stays) for cohort in self.cohorts]
        return msgspec.structs.replace(
            self, devices=devices, cohorts=_merged([*cohorts, Cohort(UNHELD_PER_S, 1.0 - stays)])
        )

    def passed(self, seconds: float, told_per_s: float) -> "Listeners":
        """Time went by, in which devices that sent heard ``told_per_s`` (``UNHELD_PER_S``: no advice)."""
        cohorts, moved = [], 0.0
        for cohort in self.cohorts:
            stays = math.exp(-2.0 * min(cohort.rate_per_s, self.demand_per_device) * seconds)
            cohorts.append(Cohort(cohort.rate_per_s, cohort.share * stays))
            moved += cohort.share * (1.0 - stays)
        return msgspec.structs.replace(self, cohorts=_merged([*cohorts, Cohort(told_per_s, moved)]))

    def outlook(self, horizon_s: float) -> tuple[float, float]:
        """``fixed`` and ``each``: told the rate a now, so many messages arrive over the horizon: fixed + each * a."""
        fixed, each = self.surplus_per_s * horizon_s, 0.0
        for cohort in self.cohorts:
            rate = min(cohort.rate_per_s, self.demand_per_device)
            keeps_s = (1.0 - math.exp(-2.0 * rate * horizon_s)) / (2.0 * rate) if rate > 0 else horizon_s
            fixed += self.devices * cohort.share * rate * keeps_s
            each += self.devices * cohort.share * (horizon_s - keeps_s)
        return fixed, each


def _merged(cohorts: list[Cohort]) -> tuple[Cohort, ...]:
    """Those with nearly the same rate as one, and never more than ``COHORTS_MAX``: the nearest are put together."""
    ordered = sorted((cohort for cohort in cohorts if cohort.share > 1e-6), key=lambda one: one.rate_per_s)
    found: list[Cohort] = []
    for cohort in ordered:
        if found and _is_near(found[-1].rate_per_s, cohort.rate_per_s):
            found[-1] = _together(found[-1], cohort)
        else:
            found.append(cohort)
    while len(found) > COHORTS_MAX:
        gaps = [after.rate_per_s / before.rate_per_s for before, after in pairwise(found)]
        place = gaps.index(min(gaps))
        found[place : place + 2] = [_together(found[place], found[place + 1])]
    total = sum(cohort.share for cohort in found)
    return tuple(Cohort(cohort.rate_per_s, cohort.share / total) for cohort in found) if total > 0 else ()


def _is_near(low: float, high: float) -> bool:
    return low == high or high <= low * (1.0 + SAME_RATE_SHARE)


def _together(one: Cohort, other: Cohort) -> Cohort:
    share = one.share + other.share
    if UNHELD_PER_S in (one.rate_per_s, other.rate_per_s):
        return Cohort(one.rate_per_s if one.share >= other.share else other.rate_per_s, share)
    return Cohort((one.rate_per_s * one.share + other.rate_per_s * other.share) / share, share)
