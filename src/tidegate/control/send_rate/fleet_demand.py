"""All classes of devices together: what they want, what arrives from them now, and what has arrived unseen.

Each class is a ``Listeners`` model that is moved on to now under the advice in force, and corrected by what was
measured of the past. The *trail* keeps what the model said of the last half minute: a measurement is compared with what
was said of its own time, and a backlog that was measured some seconds ago is carried forward by what must have arrived
since.

Corrections, both with the time constant ``DEMAND_S``:

* Where the model says that nobody was held when it was measured, what arrived is the class's own demand.
* Where somebody was, what arrived beyond the model is the surplus of devices that do not listen. It is not a demand of
  its own: as much of it as those devices were asked to leave out is in the class's demand already. Event-driven classes
  have none: what a wider dead band brings is not known beforehand, and their band follows what arrives.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import msgspec

from tidegate.control.policy import Seen
from tidegate.control.send_rate.listening import UNHELD_PER_S, Listeners
from tidegate.control.send_rate.work import Work
from tidegate.model.advice import RATE_PER_S_MIN

DEMAND_S = 5.0
RATE_S = 3.0  # over which rates are measured, about
TRAIL_S = 30.0
UNHELD_SHARE = 0.98
# Devices whose class nobody knows; no class can be called so.
UNNAMED = "*"


class Flow(msgspec.Struct, frozen=True, array_like=True):
    """What the model said arrives from this moment on: seconds of work per second, and messages per second by class."""

    at_s: float
    work: float
    per_s: dict[str, float]


class FleetDemand(msgspec.Struct, frozen=True, kw_only=True):
    classes: dict[str, Listeners] = {}
    trail: tuple[Flow, ...] = ()

    def moved_on(
        self,
        seen: Seen,
        own_rates: Mapping[str, float],
        told: Mapping[str, float],
        passed_s: float,
        driven: AbstractSet[str],
    ) -> "FleetDemand":
        """``own_rates`` is what a device of each class sends before more is known, ``told`` the rate in force;
        ``driven`` classes are event-driven."""
        arrivals, classes = arrivals_per_s(seen), {}
        for name, devices in devices_by_class(seen).items():
            before = self.classes.get(name, Listeners(demand_per_device=own_rates[name]))
            one = before.passed(passed_s, told.get(name, UNHELD_PER_S)).looked_at(seen.measured_at_s, devices)
            one = one.counted(one.expected(seen.at_s))
            expected = self._expected_per_s(name, seen.measured_at_s)
            one = _corrected(one, arrivals.get(name), expected, passed_s)
            classes[name] = msgspec.structs.replace(one, surplus_per_s=0.0) if name in driven else one
        return FleetDemand(classes=classes, trail=self.trail)

    def noted(self, at_s: float, work: Work, costs: Mapping[str, float]) -> "FleetDemand":
        """With what it says of now at the end of its trail."""
        sends = {name: one.sends_per_s() for name, one in self.classes.items()}
        flow = Flow(at_s, sum(rate * work.of(name, costs) for name, rate in sends.items()), sends)
        kept = tuple(flow for flow in self.trail if at_s - TRAIL_S <= flow.at_s < at_s)
        return msgspec.structs.replace(self, trail=(*kept, flow))

    def demand_per_s(self) -> dict[str, float]:
        return {name: one.wants_per_s() for name, one in self.classes.items()}

    def backlog_now(self, backlog: float, measured_at_s: float, nodes_working: int) -> float:
        """Seconds of work that wait, carried from when they were measured to now by what the model says arrived."""
        if not self.trail:
            return backlog
        # Before the trail begins, its beginning is the best there is.
        flow = next((one for one in reversed(self.trail) if one.at_s <= measured_at_s), self.trail[0]).work
        at_s = measured_at_s
        for point in self.trail:
            if point.at_s > measured_at_s:
                backlog = max(0.0, backlog + (flow - nodes_working) * (point.at_s - at_s))
                at_s, flow = point.at_s, point.work
        return backlog

    def _expected_per_s(self, name: str, at_s: float) -> float | None:
        """What the model said of the class, over the time in which a rate measured at this moment was counted."""
        found = [flow.per_s[name] for flow in self.trail if at_s - RATE_S <= flow.at_s <= at_s and name in flow.per_s]
        return sum(found) / len(found) if found else None


def _corrected(one: Listeners, arrival_per_s: float | None, expected_per_s: float | None, passed_s: float) -> Listeners:
    devices = one.counted_mean()
    if arrival_per_s is None or expected_per_s is None or devices <= 0:
        return one
    gain = 1.0 - math.exp(-passed_s / DEMAND_S)
    if expected_per_s >= UNHELD_SHARE * devices * one.demand_per_device:
        demand = one.demand_per_device + gain * (arrival_per_s / devices - one.demand_per_device)
        return msgspec.structs.replace(
            one, demand_per_device=max(demand, RATE_PER_S_MIN), surplus_per_s=one.surplus_per_s * (1.0 - gain)
        )
    surplus = one.surplus_per_s + gain * (arrival_per_s - expected_per_s)
    return msgspec.structs.replace(one, surplus_per_s=min(max(surplus, 0.0), arrival_per_s))


def devices_by_class(seen: Seen) -> dict[str, int]:
    """Those whose class nobody knows yet under one name of their own."""
    found = {one.name: one.devices for one in seen.classes}
    rest = seen.devices - sum(found.values())
    return {**found, UNNAMED: rest} if rest > 0 or not found else found


def arrivals_per_s(seen: Seen) -> dict[str, float]:
    """By class, as far as it is known; what brokers count beyond that came from devices whose class nobody knows,
    unless it came from a class of which nobody knows how much."""
    found = {one.name: one.arrival_per_s for one in seen.classes if one.arrival_per_s is not None}
    if len(found) < len(seen.classes) or UNNAMED not in devices_by_class(seen):
        return found
    return {**found, UNNAMED: max(0.0, seen.arrival_per_s - sum(found.values()))}


def mixture_per_s(seen: Seen) -> dict[str, float]:
    """What arrives by class; where that is not known, the share of the class's devices in what is left."""
    known, devices = arrivals_per_s(seen), devices_by_class(seen)
    missing = {name: count for name, count in devices.items() if name not in known}
    each = max(0.0, seen.arrival_per_s - sum(known.values())) / max(1, sum(missing.values()))
    return {**known, **{name: each * count for name, count in missing.items()}}
