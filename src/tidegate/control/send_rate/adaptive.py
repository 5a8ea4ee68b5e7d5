"""Tidegate's own policy: hold devices for what the nodes that work now cannot take, and for no more.

Each round, from what sensors see::

    1  work      seconds of work a message takes, from busy periods only              (work.py)
    2  fleet     which share of the devices keeps to which advice by now              (listening.py, fleet_demand.py)
    3  backlog   q = what was measured, carried forward to now over the monitoring's delay; the least of the last
                 interval in force, because devices that happen to send together make a queue that goes by itself
    4  level     weighted max-min over the classes, by their own demands              (sharing.py):
                   L_steady: what is sent by devices that have all heard takes C
                   L_drain:  what is sent until now + H, late hearers included, leaves a backlog of q_target
                 L = min(L_steady, max(L_drain, cut * L_steady))
    5  nodes     as many as are worth their price                                     (provisioning.py)

with C = nodes * utilisation seconds of work per second, H the longer of ``horizon_s`` and 1.5 intervals in force (a
shorter look ahead would ask those who hear soon to pay for those who hear late), the devices those of one round and one
interval ahead, for whom the advice is, if their number goes on as it did; q_target = ``standing_s`` seconds of
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
* While all nodes are away the last ones are counted on: a restart must not release everybody into the outage.
* Event-driven classes get a wider dead band in place of an interval (dead_bands.py).
"""

import math
from typing import Annotated

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.scaling import provisioning
from tidegate.control.scaling.provisioning import Provisioned, ProvisioningSettings
from tidegate.control.send_rate import dead_bands, sharing
from tidegate.control.send_rate.dead_bands import Band
from tidegate.control.send_rate.fleet_demand import (
    RATE_S,
    UNNAMED,
    FleetDemand,
    arrivals_per_s,
    devices_by_class,
    mixture_per_s,
)
from tidegate.control.send_rate.listening import UNHELD_PER_S
from tidegate.control.send_rate.sharing import Party
from tidegate.control.send_rate.work import Work
from tidegate.model.advice import RATE_PER_S_MIN
from tidegate.model.classes import DeviceClass

PROBE_MAX = 0.5
BUSY_SHARE = 0.97
LISTENERS_SHARE_MIN = 0.05
RELEASE_SHARE = 0.97
LEAD_S_MAX = 5.0
_ANYBODY = DeviceClass(name=UNNAMED)
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


class AdaptiveSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be chosen; how the defaults were found is in docs/reproduce.md."""

    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0
    classes: tuple[DeviceClass, ...] = ()
    horizon_s: _Seconds = 4.0
    standing_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.23
    utilisation: Annotated[float, msgspec.Meta(gt=0, le=1.2)] = 1.005
    cut: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    probe_per_s: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.01
    forget_s: _Seconds = 15.0
    ramp_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 1.0
    provisioning: ProvisioningSettings = ProvisioningSettings()


class AdaptiveState(msgspec.Struct, frozen=True, kw_only=True):
    at_s: float | None = None
    phase: str = "no evidence"
    work: Work = Work()
    fleet: FleetDemand = FleetDemand()
    told: dict[str, float] = {}  # the rate that each class was given last; UNHELD_PER_S where none
    bands: dict[str, Band] = {}
    backlogs: tuple[tuple[float, float], ...] = ()  # of the last interval in force: when, seconds of work
    probe: float = 0.0
    nodes_working: int = 0  # seen last
    nodes_counted_on: float = 0.0  # the last ones while none is there
    provisioned: Provisioned = Provisioned()


class Adaptive:
    def __init__(self, settings: AdaptiveSettings) -> None:
        self._settings = settings
        self._classes = {one.name: one for one in settings.classes}
        self._driven = {one.name for one in settings.classes if one.event_driven}
        self._costs = {one.name: one.cost for one in settings.classes if one.cost is not None}

    @property
    def state_type(self) -> type[AdaptiveState]:
        return AdaptiveState

    def initial(self) -> AdaptiveState:
        return AdaptiveState()

    def step(self, state: AdaptiveState, seen: Seen) -> tuple[AdaptiveState, Verdict]:
        passed_s = 0.0 if state.at_s is None else max(0.0, seen.at_s - state.at_s)
        names = devices_by_class(seen)
        own_rates = {name: self._default_rate(name) for name in names}
        work = self._learnt(state.work, seen, passed_s)
        told = {name: self._in_force(state, seen, name) for name in names}
        fleet = state.fleet.moved_on(seen, own_rates, told, passed_s, self._driven)
        state = msgspec.structs.replace(
            state,
            at_s=seen.at_s,
            work=work,
            fleet=fleet.noted(seen.at_s, work, self._costs),
            nodes_counted_on=self._counted_on(state.nodes_counted_on, seen.nodes_working, passed_s),
        )
        state = self._under_ceiling(state, seen.nodes_working)
        state = self._provisioned(state, seen)
        if not work.is_known or state.nodes_counted_on <= 0:
            return self._unheld(state, "no evidence")
        return self._decided(state, seen, passed_s)

    def _class(self, name: str) -> DeviceClass:
        return self._classes.get(name, _ANYBODY)

    def _default_rate(self, name: str) -> float:
        interval_s = self._class(name).default_interval_s
        return self._settings.default_rate_per_s if interval_s is None else 1.0 / interval_s

    def _in_force(self, state: AdaptiveState, seen: Seen, name: str) -> float:
        """The rate that devices of a class keep to once they have heard."""
        if name in self._driven:
            before = state.fleet.classes.get(name)
            demand = before.demand_per_device if before is not None else self._default_rate(name)
            band = seen.dead_bands.get(name, 1.0)
            return dead_bands.rate(demand, band) if band > 1.0 else UNHELD_PER_S
        interval_s = _interval_s(seen, name)
        return 1.0 / interval_s if interval_s > 0 else UNHELD_PER_S

    # -- what is known

    def _learnt(self, work: Work, seen: Seen, passed_s: float) -> Work:
        rates = arrivals_per_s(seen)
        if rates.keys() != devices_by_class(seen).keys():
            return work  # of what the messages were a mixture is not known
        expected_s = work.mixed(rates, self._costs) if work.is_known else None
        found_s = _work_of_a_message(seen, expected_s)
        if found_s is None:
            return work
        # Busy nodes prove more than idle ones, but nodes that got faster are idle just because devices are held.
        is_slower = expected_s is None or found_s >= expected_s
        weight_s = passed_s * seen.busy_share if is_slower and seen.node_rate_per_s is not None else passed_s
        return work.learnt(found_s, rates, self._costs, max(weight_s, 1e-3), self._settings.forget_s)

    def _counted_on(self, before: float, nodes_working: int, passed_s: float) -> float:
        """While no node is there the last ones are waited for: they restart, and what waits is theirs."""
        if nodes_working == 0:
            return before
        if nodes_working <= before or before == 0 or self._settings.ramp_s == 0:
            return float(nodes_working)
        return before + (1.0 - math.exp(-passed_s / self._settings.ramp_s)) * (nodes_working - before)

    def _under_ceiling(self, state: AdaptiveState, nodes_working: int) -> AdaptiveState:
        """Nodes that share a bottleneck are slower the more they are: another number of them works at another speed."""
        provisioned, before = state.provisioned, state.nodes_working
        state = msgspec.structs.replace(state, nodes_working=nodes_working)
        if provisioned.ceiling_per_s is None or not before or not nodes_working or before == nodes_working:
            return state
        per_node = 1.0 / state.work.mixed(state.fleet.demand_per_s(), self._costs)
        expected = provisioning.together_per_s(provisioned, nodes_working, per_node)
        return msgspec.structs.replace(state, work=state.work.scaled(nodes_working * per_node / expected))

    def _provisioned(self, state: AdaptiveState, seen: Seen) -> AdaptiveState:
        demand = state.fleet.demand_per_s()
        known = state.work.is_known
        provisioned = provisioning.provision(
            state.provisioned,
            self._settings.provisioning,
            at_s=seen.at_s,
            demand_per_s=sum(demand.values()),
            node_rate_per_s=1.0 / state.work.mixed(demand, self._costs) if known else None,
            node_count=seen.nodes_working,
            starting=seen.nodes_starting,
            busy_share=seen.busy_share,
        )
        return msgspec.structs.replace(state, provisioned=provisioned)

    # -- how often devices send

    def _decided(self, state: AdaptiveState, seen: Seen, passed_s: float) -> tuple[AdaptiveState, Verdict]:
        settings = self._settings
        capacity = state.nodes_counted_on * settings.utilisation * (1.0 + state.probe)
        demand = state.fleet.demand_per_s()
        wanted = sum(rate * state.work.of(name, self._costs) for name, rate in demand.items())
        state = self._with_backlog(state, seen)
        backlog = min(one for _, one in state.backlogs)
        standing = settings.standing_s * state.nodes_counted_on
        held = state.phase not in ("idle", "no evidence")
        fits = wanted <= capacity * (RELEASE_SHARE if held else 1.0)
        if fits and backlog <= (standing if held else 2.0 * standing + settings.standing_s):
            return self._unheld(state, "idle")
        steady, drain = self._levels(state, seen, capacity, standing - backlog, passed_s)
        level = min(steady, max(drain, settings.cut * steady))
        phase = "drain" if level < 0.98 * steady else "probe" if state.probe > 0 else "hold"
        state = self._probed(state, backlog / max(standing, 1e-9), seen, passed_s)
        return self._held(msgspec.structs.replace(state, phase=phase), seen, level, capacity, backlog)

    def _with_backlog(self, state: AdaptiveState, seen: Seen) -> AdaptiveState:
        # What a gateway holds back waits on its own sender's account: it comes at the rate that is advised anyway.
        measured = seen.waiting * state.work.mixed(mixture_per_s(seen), self._costs)
        backlog = state.fleet.backlog_now(measured, seen.measured_at_s, seen.nodes_working)
        recent = [one for one in state.backlogs if seen.at_s - _longest_s(seen) < one[0] < seen.at_s]
        return msgspec.structs.replace(state, backlogs=(*recent, (seen.at_s, backlog)))

    def _probed(self, state: AdaptiveState, filled: float, seen: Seen, passed_s: float) -> AdaptiveState:
        """``filled`` is the backlog over the standing queue. Nodes that are busy all the time have no more to show."""
        step = self._settings.probe_per_s * passed_s
        probe = state.probe
        if filled < 0.5 and seen.busy_share < BUSY_SHARE and seen.nodes_working > 0:
            probe = min(PROBE_MAX, probe + step)
        elif filled > 1.0:
            probe = max(0.0, probe - 5.0 * step)
        return msgspec.structs.replace(state, probe=probe)

    def _levels(
        self, state: AdaptiveState, seen: Seen, capacity: float, room: float, passed_s: float
    ) -> tuple[float, float]:
        """L_steady and L_drain. What is not for listeners to decide comes off the capacity first."""
        horizon_s = max(self._settings.horizon_s, 1.5 * _longest_s(seen))
        steady_parties, drain_parties = [], []
        steady_left, drain_left = capacity, capacity * horizon_s + room
        for name, one in state.fleet.classes.items():
            kind, work = self._class(name), state.work.of(name, self._costs)
            # Heard within an interval, and in force until the next round: it is for the devices of then.
            devices = one.expected(seen.at_s + min(passed_s + _interval_s(seen, name), LEAD_S_MAX))
            fixed, each = one.outlook(horizon_s)
            each *= devices / max(one.devices, 1)
            steady_left -= one.surplus_per_s * work
            drain_left -= fixed * work
            if kind.never_delay:
                steady_left -= devices * one.demand_per_device * work
                drain_left -= each * one.demand_per_device * work
                continue
            weight = kind.weight / work
            steady_parties.append(Party(weight, devices * work, one.demand_per_device))
            drain_parties.append(Party(weight, each * work, one.demand_per_device))
        steady_left = max(steady_left, LISTENERS_SHARE_MIN * capacity)
        return sharing.level(steady_parties, steady_left), sharing.level(drain_parties, drain_left)

    # -- what is said

    def _held(
        self, state: AdaptiveState, seen: Seen, level: float, capacity: float, backlog: float
    ) -> tuple[AdaptiveState, Verdict]:
        told, bands = {}, {}
        for name, one in state.fleet.classes.items():
            kind = self._class(name)
            share = level * kind.weight / state.work.of(name, self._costs)
            if kind.never_delay or share >= one.demand_per_device:
                told[name] = UNHELD_PER_S
                continue
            told[name] = max(share, RATE_PER_S_MIN)
            if name in self._driven:
                bands[name] = self._band(state, seen, name, told[name])
        if all(rate >= UNHELD_PER_S for rate in told.values()):
            return self._unheld(state, "idle")
        state = msgspec.structs.replace(state, told=told, bands=bands)
        rule = (
            f"{state.phase}: {seen.nodes_working} nodes take {capacity:.3g} s of work a second, {backlog:.2g} s wait; "
            f"devices want {sum(state.fleet.demand_per_s().values()):,.0f} msg/s; weighted max-min gives "
            + ", ".join(f"{_spoken(name)} {_rate(rate)}" for name, rate in sorted(told.items()))
        )
        return state, self._verdict(state, capacity, rule, "leave devices at their default: the backlog would grow")

    def _band(self, state: AdaptiveState, seen: Seen, name: str, wanted: float) -> Band:
        one = state.fleet.classes[name]
        arrived = next((found.arrival_per_s for found in seen.classes if found.name == name), None) or 0.0
        return dead_bands.widened(
            state.bands.get(name),
            at_s=seen.at_s,
            demand=one.demand_per_device,
            wanted=wanted,
            measured=arrived / one.devices if one.devices else 0.0,
            pause_s=seen.at_s - seen.measured_at_s + 2.0 * RATE_S,
        )

    def _unheld(self, state: AdaptiveState, phase: str) -> tuple[AdaptiveState, Verdict]:
        told = dict.fromkeys(state.fleet.classes, UNHELD_PER_S)
        state = msgspec.structs.replace(state, phase=phase, told=told, bands={}, probe=0.0)
        reason = {
            "idle": "idle: what devices want to send fits what the nodes take",
            "no evidence": "no node was seen at its limit yet: what the nodes can take is not known",
        }[phase]
        capacity = state.nodes_counted_on * self._settings.utilisation
        return state, self._verdict(state, capacity, reason, "hold devices: nothing shows that it is needed")

    def _verdict(self, state: AdaptiveState, capacity: float, rule: str, rejected: str) -> Verdict:
        demand = state.fleet.demand_per_s()
        known = state.work.is_known and capacity > 0
        driven = self._driven & state.fleet.classes.keys()
        settings = self._settings.provisioning
        scales = settings.nodes_max > settings.nodes_min
        rates = {name: None if rate >= UNHELD_PER_S else rate for name, rate in state.told.items()}
        return Verdict(
            phase=state.phase,
            rate_per_device=self._of_no_class(rates),
            capacity_per_s=capacity / state.work.mixed(demand, self._costs) if known else None,
            demand_per_s=sum(demand.values()),
            nodes_wanted=state.provisioned.wanted if scales else None,
            classes={name: rate for name, rate in rates.items() if name != UNNAMED and name not in self._driven},
            # Every event-driven class is named: one that is not held keeps its band, whatever others keep to.
            dead_bands={name: state.bands[name].width if name in state.bands else 1.0 for name in driven},
            rule=rule,
            rejected=rejected,
        )

    def _of_no_class(self, rates: dict[str, float | None]) -> float | None:
        """For a device that names no class: its gateway counts it where everything else belongs."""
        rest = next((one.name for one in self._settings.classes if "#" in one.topics), None)
        for name in (UNNAMED, rest):
            if name in rates:
                return rates[name]
        return min((rate for rate in rates.values() if rate is not None), default=None)


def _interval_s(seen: Seen, name: str) -> float:
    """The advised interval in force for a class; 0 where there is none."""
    return seen.intervals_s.get(name, seen.interval_s)


def _longest_s(seen: Seen) -> float:
    """The longest interval in force."""
    return max([seen.interval_s, *seen.intervals_s.values()])


def _work_of_a_message(seen: Seen, expected_s: float | None) -> float | None:
    """Evidence: what nodes say about work at their limit; else, in an overload, that they work without a pause; else,
    where they take more than they were thought to, that they can."""
    if seen.node_rate_per_s is not None:
        return 1.0 / seen.node_rate_per_s if seen.node_rate_per_s > 0 else None
    if seen.nodes_working < 1 or seen.departure_per_s <= 0:
        return None
    shown_s = seen.nodes_working / seen.departure_per_s
    overloaded = seen.overload and seen.waiting > seen.departure_per_s
    return shown_s if overloaded or (expected_s is not None and 1.02 * shown_s < expected_s) else None


def _rate(rate: float) -> str:
    return "its default" if rate >= UNHELD_PER_S else f"{rate:.3g} msg/s"


def _spoken(name: str) -> str:
    return "others" if name == UNNAMED else name
