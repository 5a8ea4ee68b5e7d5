"""Tidegate's own policy: hold devices for what the nodes that work now cannot take, and for no more.

Each round, from what sensors see::

    1  work      seconds of work a message takes, from busy periods only              (work.py)
    2  fleet     which share of the devices keeps to which advice by now              (listening.py)
    3  backlog   q = what was measured, carried forward to now over the monitoring's delay; the least of the last
                 interval in force, because devices that happen to send together make a queue that goes by itself
    4  level     weighted max-min over the classes, by their own demands              (sharing.py):
                   L_steady: what is sent by devices that have all heard takes C
                   L_drain:  what is sent until now + H, late hearers included, leaves a backlog of q_target
                 L = min(L_steady, max(L_drain, cut * L_steady))
    5  nodes     as many as are worth their price                                     (provisioning.py)

with C = nodes * utilisation seconds of work per second, H the longer of ``horizon_s`` and 1.5 intervals in force (a
shorter look ahead would ask those who hear soon to pay for those who hear late), q_target = ``standing_s`` seconds of
work: an empty queue would waste capacity at every gap between two messages.

Regimes. *no evidence*: no node was seen at its limit yet, nobody is held: a cold start and empty batches prove nothing.
*idle*: everybody's demand fits and the backlog drains by itself soon enough. *hold*: the demand does not fit. *drain*:
there is more backlog than q_target, L_drain counts. *probe*: held, with the queue nearly empty and nodes that are not
busy all the time: the estimate may be too low, so C grows by ``probe_per_s`` a second up to ``PROBE_MAX``, and falls
back five times as fast once the standing queue is there: the overshoot is a part of a small queue.

Clamps, each with its reason:

* L <= L_steady: more than the steady share, to fill a gap quickly, would be regretted when late hearers follow.
* L >= ``cut`` * L_steady: a device asked to wait long hears late that it may send again.
* Classes that must never be delayed, and what arrives from devices that do not listen, are taken off C first; at least
  ``LISTENERS_SHARE_MIN`` of it stays for the others: advice rides on acknowledgements, and who is silent hears nothing.
* A rate is at least that of the longest interval advice can name: never zero.
* A node that has just come is counted on with the time constant ``ramp_s``: it may be cold, or share what it runs on.
* A change of demand below ``RELEASE_SHARE`` of C ends holding: between both limits the state stays as it is.
* Event-driven classes get a wider dead band instead: band *= sqrt(measured / wanted), within a factor 2 per round and
  10^4 in all. For a random walk, where the rate falls with the square of the band, that is exact; for slower laws it
  converges in steps.
"""

import math
from typing import Annotated

import msgspec

from tidegate.control.send_rate import provisioning, sharing
from tidegate.control.send_rate.listening import UNHELD_PER_S, Listeners
from tidegate.control.send_rate.policy import Seen, Verdict
from tidegate.control.send_rate.provisioning import Provisioned, ProvisioningSettings
from tidegate.control.send_rate.sharing import Party
from tidegate.control.send_rate.work import Work
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.classes import DeviceClass

RATE_PER_S_MIN = 1.0 / INTERVAL_S_MAX
PROBE_MAX = 0.5
BUSY_SHARE = 0.97
LISTENERS_SHARE_MIN = 0.05
RELEASE_SHARE = 0.97
DEMAND_S = 5.0  # over which a class's own demand, and what arrives beyond the model, is averaged
RATE_S = 3.0  # over which rates are measured, about
TRAIL_S = 30.0
BAND_MAX = 1e4
_ANYBODY = DeviceClass(name="any", topics=("#",))
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


class AdaptiveSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be chosen; the defaults were tuned on training seeds (see docs/send-rate-policies.md)."""

    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0
    classes: tuple[DeviceClass, ...] = ()
    horizon_s: _Seconds = 4.0
    standing_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.27
    utilisation: Annotated[float, msgspec.Meta(gt=0, le=1.2)] = 1.015
    cut: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    probe_per_s: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.01
    forget_s: _Seconds = 15.0
    ramp_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 1.0
    provisioning: ProvisioningSettings = ProvisioningSettings()


class Flow(msgspec.Struct, frozen=True, array_like=True):
    """What the model said arrives from this moment on: seconds of work per second, and messages per second by class."""

    at_s: float
    work: float
    per_s: dict[str, float]


class AdaptiveState(msgspec.Struct, frozen=True, kw_only=True):
    at_s: float | None = None
    phase: str = "no evidence"
    work: Work = Work()
    fleet: dict[str, Listeners] = {}
    told: dict[str, float] = {}  # the rate each class was told last; UNHELD_PER_S where none
    bands: dict[str, float] = {}
    trail: tuple[Flow, ...] = ()
    backlogs: tuple[tuple[float, float], ...] = ()  # of the last interval in force: when, seconds of work
    probe: float = 0.0
    working: float = 0.0  # nodes that are counted on
    provisioned: Provisioned = Provisioned()


class Adaptive:
    def __init__(self, settings: AdaptiveSettings) -> None:
        self._settings = settings
        self._classes = {one.name: one for one in settings.classes}
        self._costs = {one.name: one.cost for one in settings.classes if one.cost is not None}

    @property
    def state_type(self) -> type[AdaptiveState]:
        return AdaptiveState

    def initial(self) -> AdaptiveState:
        return AdaptiveState()

    def step(self, state: AdaptiveState, seen: Seen) -> tuple[AdaptiveState, Verdict]:
        passed_s = 0.0 if state.at_s is None else max(0.0, seen.at_s - state.at_s)
        rates = _rates(seen)
        state = msgspec.structs.replace(
            state,
            at_s=seen.at_s,
            work=self._learnt(state.work, seen, rates, passed_s),
            fleet=self._followed(state, seen, rates, passed_s),
        )
        state = msgspec.structs.replace(state, trail=self._trail(state, seen.at_s))
        state = msgspec.structs.replace(state, working=self._working(state.working, seen.instances, passed_s))
        if not state.work.is_known or seen.instances < 1:
            return self._unheld(state, "no evidence")
        state = self._provisioned(state, seen)
        return self._decided(state, seen, rates, passed_s)

    # -- what is known

    def _learnt(self, work: Work, seen: Seen, rates: dict[str, float], passed_s: float) -> Work:
        found_s = _work_of_a_message(seen)
        if found_s is None and work.is_known:
            found_s = _shown_by_departures(seen, work.mixed(rates, self._costs))
        if found_s is None:
            return work
        weight_s = passed_s * seen.busy_share if seen.rate_per_instance is not None else passed_s
        return work.learnt(found_s, rates, self._costs, max(weight_s, 1e-3), self._settings.forget_s)

    def _followed(
        self, state: AdaptiveState, seen: Seen, rates: dict[str, float], passed_s: float
    ) -> dict[str, Listeners]:
        """The model moved on to now, and corrected by what was measured of the time it can be compared with."""
        fleet = {}
        for name, devices in _devices(seen).items():
            own = self._default_rate(name)
            before = state.fleet.get(name, Listeners(demand_per_device=own))
            one = before.passed(passed_s, state.told.get(name, UNHELD_PER_S)).looked_at(seen.measured_at_s, devices)
            one = one.counted(one.expected(seen.at_s))
            expected = _expected_per_s(state.trail, name, seen.measured_at_s)
            fleet[name] = _corrected(one, seen, rates.get(name, 0.0), expected, passed_s)
        return fleet

    def _default_rate(self, name: str) -> float:
        interval_s = self._classes.get(name, _ANYBODY).default_interval_s
        return self._settings.default_rate_per_s if interval_s is None else 1.0 / interval_s

    def _trail(self, state: AdaptiveState, at_s: float) -> tuple[Flow, ...]:
        sends = {name: one.sends_per_s() for name, one in state.fleet.items()}
        work = sum(rate * state.work.of(name, self._costs) for name, rate in sends.items())
        kept = tuple(flow for flow in state.trail if flow.at_s >= at_s - TRAIL_S and flow.at_s < at_s)
        return (*kept, Flow(at_s, work, sends))

    def _working(self, before: float, instances: int, passed_s: float) -> float:
        if instances <= before or before == 0:
            return float(instances)
        share = 1.0 - math.exp(-passed_s / self._settings.ramp_s) if self._settings.ramp_s > 0 else 1.0
        return before + share * (instances - before)

    # -- how many nodes

    def _demand(self, state: AdaptiveState) -> dict[str, float]:
        return {name: one.devices * one.demand_per_device + one.surplus_per_s for name, one in state.fleet.items()}

    def _provisioned(self, state: AdaptiveState, seen: Seen) -> AdaptiveState:
        demand = self._demand(state)
        provisioned = provisioning.provision(
            state.provisioned,
            self._settings.provisioning,
            at_s=seen.at_s,
            demand_per_s=sum(demand.values()),
            rate_per_instance=1.0 / state.work.mixed(demand, self._costs),
            instances=seen.instances,
            starting=seen.instances_starting,
            busy_share=seen.busy_share,
        )
        return msgspec.structs.replace(state, provisioned=provisioned)

    # -- how often devices send

    def _decided(
        self, state: AdaptiveState, seen: Seen, rates: dict[str, float], passed_s: float
    ) -> tuple[AdaptiveState, Verdict]:
        settings = self._settings
        capacity = state.working * settings.utilisation * (1.0 + state.probe)
        demand = self._demand(state)
        wanted = sum(rate * state.work.of(name, self._costs) for name, rate in demand.items())
        state = self._with_backlog(state, seen, rates)
        backlog = min(one for _, one in state.backlogs)
        standing = settings.standing_s * seen.instances
        held = state.phase not in ("idle", "no evidence")
        fits = wanted <= capacity * (RELEASE_SHARE if held else 1.0)
        if fits and backlog <= (standing if held else 2.0 * standing + settings.standing_s):
            return self._unheld(msgspec.structs.replace(state, probe=0.0), "idle")
        steady, drain = self._levels(state, capacity, standing - backlog)
        level = min(steady, max(drain, settings.cut * steady))
        phase = "drain" if level < 0.98 * steady else "probe" if state.probe > 0 else "hold"
        state = self._probed(state, backlog / max(standing, 1e-9), seen.busy_share, passed_s)
        return self._held(msgspec.structs.replace(state, phase=phase), seen, level, capacity, backlog)

    def _probed(self, state: AdaptiveState, filled: float, busy_share: float, passed_s: float) -> AdaptiveState:
        """``filled`` is the backlog over the standing queue. Nodes that are busy all the time have no more to show."""
        step = self._settings.probe_per_s * passed_s
        if filled < 0.5 and busy_share < BUSY_SHARE:
            probe = min(PROBE_MAX, state.probe + step)
        elif filled > 1.0:
            probe = max(0.0, state.probe - 5.0 * step)
        else:
            probe = state.probe
        return msgspec.structs.replace(state, probe=probe)

    def _with_backlog(self, state: AdaptiveState, seen: Seen, rates: dict[str, float]) -> AdaptiveState:
        recent = [one for one in state.backlogs if seen.at_s - _longest_s(state) < one[0] < seen.at_s]
        return msgspec.structs.replace(state, backlogs=(*recent, (seen.at_s, self._backlog_now(state, seen, rates))))

    def _backlog_now(self, state: AdaptiveState, seen: Seen, rates: dict[str, float]) -> float:
        """Seconds of work that wait, carried from when they were measured to now by what the model says arrived."""
        backlog = (seen.waiting + seen.held) * state.work.mixed(rates, self._costs)
        at_s = seen.measured_at_s
        later = [flow for flow in state.trail if flow.at_s > seen.measured_at_s]
        before = _flow_at(state.trail, seen.measured_at_s)
        flow = before.work if before is not None else 0.0
        for point in later:
            backlog = max(0.0, backlog + (flow - seen.instances) * (point.at_s - at_s))
            at_s, flow = point.at_s, point.work
        return backlog

    def _levels(self, state: AdaptiveState, capacity: float, room: float) -> tuple[float, float]:
        """L_steady and L_drain. What is not for listeners to decide comes off the capacity first."""
        horizon_s = max(self._settings.horizon_s, 1.5 * _longest_s(state))
        steady_parties, drain_parties = [], []
        steady_left, drain_left = capacity, capacity * horizon_s + room
        for name, one in state.fleet.items():
            kind, work = self._classes.get(name, _ANYBODY), state.work.of(name, self._costs)
            fixed, each = one.outlook(horizon_s)
            steady_left -= one.surplus_per_s * work
            drain_left -= fixed * work
            if kind.never_delay:
                steady_left -= one.devices * one.demand_per_device * work
                drain_left -= each * one.demand_per_device * work
                continue
            weight = kind.weight / work
            steady_parties.append(Party(weight, one.devices * work, one.demand_per_device))
            drain_parties.append(Party(weight, each * work, one.demand_per_device))
        steady_left = max(steady_left, LISTENERS_SHARE_MIN * capacity)
        return sharing.level(steady_parties, steady_left), sharing.level(drain_parties, drain_left)

    def _held(
        self, state: AdaptiveState, seen: Seen, level: float, capacity: float, backlog: float
    ) -> tuple[AdaptiveState, Verdict]:
        told, bands = {}, {}
        for name, one in state.fleet.items():
            kind = self._classes.get(name, _ANYBODY)
            share = (
                one.demand_per_device if kind.never_delay else level * kind.weight / state.work.of(name, self._costs)
            )
            held = share < one.demand_per_device
            told[name] = max(share, RATE_PER_S_MIN) if held else UNHELD_PER_S
            if kind.event_driven:
                bands[name] = self._band(state, seen, name, min(share, one.demand_per_device))
        state = msgspec.structs.replace(state, told=told, bands=bands)
        rule = (
            f"{state.phase}: {seen.instances} nodes take {capacity:.3g} s of work a second, {backlog:.2g} s wait; "
            f"devices want {sum(self._demand(state).values()):,.0f} msg/s; weighted max-min gives "
            + ", ".join(f"{name} {_rate(rate)}" for name, rate in sorted(told.items()))
        )
        rejected = "leave devices at their default: the backlog would grow"
        return state, self._verdict(state, capacity, rule, rejected)

    def _band(self, state: AdaptiveState, seen: Seen, name: str, wanted: float) -> float:
        band, one = state.bands.get(name, 1.0), state.fleet[name]
        measured = next((found.arrival_per_s for found in seen.classes if found.name == name), 0.0)
        if one.devices == 0 or measured <= 0:
            return band
        step = math.sqrt(measured / (one.devices * wanted))
        return min(BAND_MAX, max(1.0, band * min(2.0, max(0.5, step))))

    def _unheld(self, state: AdaptiveState, phase: str) -> tuple[AdaptiveState, Verdict]:
        told = dict.fromkeys(state.fleet, UNHELD_PER_S)
        state = msgspec.structs.replace(state, phase=phase, told=told, bands={}, probe=0.0)
        reason = {
            "idle": "idle: what devices want to send fits what the nodes take",
            "no evidence": "no node was seen at its limit yet: what the nodes can take is not known",
        }[phase]
        capacity = state.working * self._settings.utilisation
        return state, self._verdict(state, capacity, reason, "hold devices: nothing shows that it is needed")

    def _verdict(self, state: AdaptiveState, capacity: float, rule: str, rejected: str) -> Verdict:
        demand = self._demand(state)
        known = state.work.is_known and capacity > 0
        settings = self._settings.provisioning
        scales = settings.instances_max > settings.instances_min
        rates = {name: None if rate >= UNHELD_PER_S else rate for name, rate in state.told.items()}
        driven = {name for name in rates if self._classes.get(name, _ANYBODY).event_driven}
        return Verdict(
            phase=state.phase,
            rate_per_device=self._of_no_class(rates),
            capacity_per_s=capacity / state.work.mixed(demand, self._costs) if known else None,
            demand_per_s=sum(demand.values()),
            instances=state.provisioned.wanted if scales else None,
            classes={name: rate for name, rate in rates.items() if name != _ANYBODY.name and name not in driven},
            dead_bands={name: band for name, band in state.bands.items() if band > 1.0},
            rule=rule,
            rejected=rejected,
        )

    def _of_no_class(self, rates: dict[str, float | None]) -> float | None:
        """For a device that names no class: its gateway counts it where everything else belongs."""
        rest = next((one.name for one in self._settings.classes if "#" in one.topics), None)
        for name in (_ANYBODY.name, rest):
            if name in rates:
                return rates[name]
        return min((rate for rate in rates.values() if rate is not None), default=None)


def _shown_by_departures(seen: Seen, work_s: float) -> float | None:
    """Nodes that are not at their limit and yet take more than they were thought to: the estimate was too low."""
    if seen.instances < 1 or seen.departure_per_s * work_s <= 1.02 * seen.instances:
        return None
    return seen.instances / seen.departure_per_s


def _longest_s(state: AdaptiveState) -> float:
    """The longest interval that any class was told."""
    return max((1.0 / rate for rate in state.told.values()), default=0.0)


def _rate(rate: float) -> str:
    return "its default" if rate >= UNHELD_PER_S else f"{rate:.3g} msg/s"


def _devices(seen: Seen) -> dict[str, int]:
    """By class; those whose class nobody knows yet under one name of their own."""
    found = {one.name: one.devices for one in seen.classes}
    rest = seen.devices - sum(found.values())
    return {**found, _ANYBODY.name: rest} if rest > 0 or not found else found


def _rates(seen: Seen) -> dict[str, float]:
    """What arrives, by class; scaled to the whole, because gateways and brokers count at different moments."""
    found = {one.name: one.arrival_per_s for one in seen.classes}
    rest = max(0.0, seen.arrival_per_s - sum(found.values()))
    return {**found, _ANYBODY.name: rest} if _ANYBODY.name in _devices(seen) else found


def _work_of_a_message(seen: Seen) -> float | None:
    """Evidence: what nodes say about work at their limit; else, in an overload, that they work without a pause."""
    if seen.rate_per_instance is not None:
        return 1.0 / seen.rate_per_instance if seen.rate_per_instance > 0 else None
    if seen.overload and seen.departure_per_s > 0 and seen.waiting > seen.departure_per_s:
        return max(seen.instances, 1) / seen.departure_per_s
    return None


def _corrected(
    one: Listeners, seen: Seen, arrival_per_s: float, expected_per_s: float | None, passed_s: float
) -> Listeners:
    """Unheld devices show their own demand; what is beyond the model is the surplus of those that do not listen."""
    gain = 1.0 - math.exp(-passed_s / DEMAND_S)
    if one.devices and one.held_share() < 0.02 and seen.at_s - seen.measured_at_s < 1.0:
        demand = one.demand_per_device + gain * (arrival_per_s / one.devices - one.demand_per_device)
        return msgspec.structs.replace(
            one, demand_per_device=max(demand, RATE_PER_S_MIN), surplus_per_s=one.surplus_per_s * (1.0 - gain)
        )
    if expected_per_s is None:
        return one
    surplus = one.surplus_per_s + gain * (arrival_per_s - expected_per_s)
    return msgspec.structs.replace(one, surplus_per_s=min(max(surplus, 0.0), arrival_per_s))


def _expected_per_s(trail: tuple[Flow, ...], name: str, at_s: float) -> float | None:
    """What the model said of the class, over the time in which a rate that was measured at this moment was counted."""
    found = [flow.per_s[name] for flow in trail if at_s - RATE_S <= flow.at_s <= at_s and name in flow.per_s]
    return sum(found) / len(found) if found else None


def _flow_at(trail: tuple[Flow, ...], at_s: float) -> Flow | None:
    """What the model said of that moment."""
    return next((flow for flow in reversed(trail) if flow.at_s <= at_s), None)
