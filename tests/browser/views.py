"""A plausible installation that moves: calm, a flood nobody is protected from, and the same flood with protection.

A fluid model of one queue, stepped once a second: what the dashboard's tests and screenshots look at.
"""

from dataclasses import dataclass

from tidegate.model.decisions import Action, Decision, Mode, Reason
from tidegate.model.observations import BrokerState, GatewayState, NodeState
from tidegate.model.view import Chain, Sample, View

CAPACITY_PER_S = 500.0
CALM_DEVICES, FLOOD_DEVICES = 100, 800
DEFAULT_INTERVAL_S = 0.5
PERIOD_S = 0.5


@dataclass
class World:
    """State of the queue. ``flooded_from_s`` and ``flooded_until_s`` bound the flood."""

    protected: bool
    flooded_from_s: float = 25.0
    flooded_until_s: float = 90.0
    waiting: float = 0.0
    interval_s: float = 0.0
    phase: str = "idle"

    def step(self, at_s: float) -> Sample:
        devices = FLOOD_DEVICES if self.flooded_from_s <= at_s < self.flooded_until_s else CALM_DEVICES
        interval_s = max(DEFAULT_INTERVAL_S, self.interval_s)
        wobble = 1 + 0.03 * ((int(at_s * 7) * 37) % 11 - 5) / 5
        arrival = devices / interval_s * wobble
        departure = min(CAPACITY_PER_S * (2 - wobble), arrival + self.waiting / PERIOD_S)
        self.waiting = max(0.0, self.waiting + (arrival - departure) * PERIOD_S)
        age_s = 0.35 * wobble + self.waiting / CAPACITY_PER_S
        if self.protected:
            self._advise(devices, age_s)
        return Sample(
            at_s=at_s,
            age_s=age_s,
            arrival_per_s=arrival,
            departure_per_s=departure,
            waiting=int(self.waiting),
            devices=devices,
            interval_s=self.interval_s,
            capacity_per_s=CAPACITY_PER_S if at_s > self.flooded_from_s + 3 else None,
            phase=self.phase,
        )

    def _advise(self, devices: int, age_s: float) -> None:
        fitting_s = devices / CAPACITY_PER_S
        if age_s > 1.5:
            self.phase, self.interval_s = "protect", fitting_s / 0.9
        elif self.phase == "protect":
            self.phase = "recover"
        elif self.phase == "recover":
            self.interval_s = max(fitting_s, self.interval_s / 1.04)
            if self.interval_s <= DEFAULT_INTERVAL_S:
                self.phase, self.interval_s = "idle", 0.0


def run(seconds: float, *, protected: bool, began_s: float = 0.0) -> tuple[Sample, ...]:
    """The samples of a run that lasts this long."""
    world = World(protected=protected)
    samples = [world.step(number * PERIOD_S) for number in range(int(seconds / PERIOD_S) + 1)]
    return tuple(
        Sample(**{**{name: getattr(s, name) for name in s.__struct_fields__}, "at_s": began_s + s.at_s})
        for s in samples
    )


def decisions_of(samples: tuple[Sample, ...], *, acted: bool = True) -> tuple[Decision, ...]:
    """A decision wherever the advised interval changed by more than two per cent."""
    found: list[Decision] = []
    advised_s = 0.0
    for sample in samples:
        if abs(sample.interval_s - advised_s) <= 0.02 * advised_s:
            continue
        advised_s = sample.interval_s
        found.append(_decision(sample, acted=acted))
    return tuple(found)


def _decision(sample: Sample, *, acted: bool) -> Decision:
    if sample.interval_s > 0:
        sentence = (
            f"{sample.devices} devices are asked to send every {sample.interval_s:.2g} s, because data is "
            f"{sample.age_s:.2g} s old and Spark takes {CAPACITY_PER_S:.0f} msg/s."
        )
    else:
        sentence = "Devices return to their default interval, because the flood is over."
    reason = Reason(
        readings={"head_age_s": round(sample.age_s, 2), "devices": sample.devices, "capacity_per_s": CAPACITY_PER_S},
        rule=f"{sample.phase}: rate = capacity / devices",
        rejected="Leave devices at their default: data would age by 2.2 s every second.",
    )
    action = Action(kind="advise", arguments={"interval_s": sample.interval_s, "lifetime_s": 10}, reason=reason)
    return Decision(
        at_s=sample.at_s, controller="controller-1", phase=sample.phase, sentence=sentence, acted=acted, action=action
    )


def view_at(samples: tuple[Sample, ...], mode: Mode, *, broken: bool = False) -> View:
    """What the controller shows after these samples."""
    now = samples[-1]
    published = int(sum(sample.arrival_per_s for sample in samples) * PERIOD_S)
    problem = "does not answer its monitoring page" if broken else None
    return View(
        name="pump-house",
        controller="controller-1",
        leader="controller-1",
        mode=mode,
        samples=samples,
        decisions=decisions_of(samples, acted=mode.send_rate == "acting")[-50:],
        chain=Chain(
            gateways=(_gateway("gateway-1", now, published),),
            brokers=(
                BrokerState(name="broker-1", address="127.0.0.1:1883", healthy=True, connections=now.devices),
                BrokerState(name="broker-2", address="127.0.0.1:1884", healthy=not broken, problem=problem),
            ),
            nodes=(
                NodeState(name="node-1", alive=True, slices=(0, 1, 2, 3), rows=published // 2, cost_s=31.0),
                NodeState(name="node-2", alive=True, slices=(4, 5, 6, 7), rows=published // 2, cost_s=30.0),
            ),
        ),
        alarms=(f"broker-2 {problem}",) if problem else (),
    )


def _gateway(name: str, now: Sample, published: int) -> GatewayState:
    return GatewayState(
        name=name,
        address="127.0.0.1:1880",
        measured_at_s=now.at_s,
        connections=now.devices,
        publishes=published,
        acknowledged=published,
        advised=published // 10,
        refused={"packet larger than 64 KiB": 3, "topic not allowed": 1},
        brokers={"broker-1": now.devices},
    )
