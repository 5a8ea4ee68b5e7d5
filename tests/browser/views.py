"""A plausible installation that moves: calm, or flooded without protection, with it, in shadow mode, with classes, or
with gateways that hold the devices that do not listen.

A fluid model of one queue, stepped twice a second: what the dashboard's tests and screenshots look at.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import msgspec

from tidegate.model.actions import Action, Advise, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision, Mode
from tidegate.model.intents import Reason
from tidegate.model.notices import ActionPlan, EventNotification
from tidegate.model.observations import BrokerState, ClassState, GatewayState, HeldClient, NodeState, ProcessState
from tidegate.model.view import ChainStates, RulesState, RuleState, Sample, View

NODE_PER_S = 250.0
NODES, NODES_MAX = 2, 4
NODE_START_S = 20.0
CALM_DEVICES, FLOOD_DEVICES = 100, 800
FLOOD_FROM_S, FLOOD_UNTIL_S = 25.0, 300.0
DEFAULT_INTERVAL_S = 0.5
PERIOD_S = 0.5
CLASSES = {"telemetry": 0.85, "command": 0.13, "alarm": 0.02}  # shares of the devices


class Run(msgspec.Struct, frozen=True, kw_only=True):
    samples: tuple[Sample, ...]
    decisions: tuple[Decision, ...]

    def until(self, at_s: float) -> "Run":
        return Run(
            samples=tuple(sample for sample in self.samples if sample.at_s <= at_s),
            decisions=tuple(decision for decision in self.decisions if decision.at_s <= at_s),
        )

    def shifted(self, by_s: float) -> "Run":
        return Run(
            samples=tuple(msgspec.structs.replace(one, at_s=one.at_s + by_s) for one in self.samples),
            decisions=tuple(msgspec.structs.replace(one, at_s=one.at_s + by_s) for one in self.decisions),
        )


@dataclass
class World:
    """The queue, who sends into it and who works on it. ``scenario`` says what is done about it."""

    scenario: str
    waiting: float = 0.0
    interval_s: float = 0.0  # decided; in force where devices are told
    phase: str = "idle"
    nodes: int = NODES
    wanted: int = NODES
    starting: deque[float] = field(default_factory=deque)
    decisions: list[Decision] = field(default_factory=list)

    @property
    def _is_told(self) -> bool:
        return self.scenario != "shadow"

    @property
    def _has_classes(self) -> bool:
        return self.scenario == "classes"

    @property
    def capacity_per_s(self) -> float:
        return self.nodes * NODE_PER_S

    def step(self, at_s: float) -> Sample:
        is_flood = FLOOD_FROM_S <= at_s < FLOOD_UNTIL_S and self.scenario != "calm"
        devices = FLOOD_DEVICES if is_flood else CALM_DEVICES
        demand = devices / DEFAULT_INTERVAL_S
        in_force_s = self.interval_s if self._is_told else 0.0
        wobble = 1 + 0.03 * ((int(at_s * 7) * 37) % 11 - 5) / 5
        arrival = devices / max(DEFAULT_INTERVAL_S, in_force_s) * wobble
        departure = min(self.capacity_per_s * (2 - wobble), arrival + self.waiting / PERIOD_S)
        self.waiting = max(0.0, self.waiting + (arrival - departure) * PERIOD_S)
        age_s = 0.35 * wobble + self.waiting / self.capacity_per_s
        if self.scenario not in ("calm", "flood"):
            self._advise(at_s, devices, age_s)
        if self._has_classes:
            self._scale(at_s, demand, age_s)
        return Sample(
            at_s=at_s,
            age_s=age_s,
            arrival_per_s=arrival,
            departure_per_s=departure,
            waiting=int(self.waiting),
            devices=devices,
            interval_s=self.interval_s if self._is_told else 0.0,
            capacity_per_s=self.capacity_per_s if at_s > FLOOD_FROM_S + 3 else None,
            phase=self.phase,
            demand_per_s=demand if self._has_classes else None,
            nodes_working=self.nodes,
            nodes_wanted=self.wanted if self._has_classes else None,
            classes=self._classes(),
        )

    def _classes(self) -> dict[str, float]:
        """Commands wait half as long as telemetry, alarms never."""
        return (
            {"alarm": 0.0, "command": max(DEFAULT_INTERVAL_S, self.interval_s / 2)}
            if self._has_classes and self.interval_s
            else {}
        )

    def _advise(self, at_s: float, devices: int, age_s: float) -> None:
        before_s = self.interval_s
        fitting_s = devices / self.capacity_per_s
        protect, recover = ("drain", "hold") if self._has_classes else ("protect", "recover")
        if age_s > 1.5:
            self.phase, self.interval_s = protect, fitting_s / 0.9
        elif self.phase == protect:
            self.phase = recover
        elif self.phase == recover:
            self.interval_s = max(fitting_s, self.interval_s / 1.04)
            if self.interval_s <= DEFAULT_INTERVAL_S:
                self.phase, self.interval_s = "idle", 0.0
        if abs(self.interval_s - before_s) > 0.02 * before_s:
            verb = "are" if self._is_told else "would be"
            sentence = (
                f"{devices} devices {verb} asked to send every {self.interval_s:.2g} s because data is "
                f"{age_s:.2g} s old and Spark takes {self.capacity_per_s:.0f} msg/s."
                if self.interval_s
                else "Devices return to their default because the default rate is reached without an overload."
            )
            advice = Advice(interval_s=self.interval_s, lifetime_s=10.0, classes=self._classes())
            self._decide(at_s, age_s, Advise(advice=advice), sentence)

    def _scale(self, at_s: float, demand: float, age_s: float) -> None:
        while self.starting and self.starting[0] <= at_s:
            self.starting.popleft()
            self.nodes += 1
        wanted = min(NODES_MAX, max(NODES, math.ceil(demand / NODE_PER_S)))
        if wanted == self.wanted:
            return
        self.starting += [at_s + NODE_START_S + 5 * number for number in range(wanted - self.nodes)]
        self.nodes, self.wanted = min(self.nodes, wanted), wanted
        sentence = f"{wanted} processing nodes shall run because devices want to send {demand:,.0f} msg/s."
        self._decide(at_s, age_s, ScaleNodes(nodes_wanted=wanted), sentence)

    def _decide(self, at_s: float, age_s: float, action: Action, sentence: str) -> None:
        reason = Reason(
            measurements={"head_age_s": round(age_s, 2), "capacity_per_s": self.capacity_per_s},
            rule=f"{self.phase}: rate = capacity / devices",
            rejected="Leave devices at their default: data would age by 2.2 s every second.",
            because="data would age",
        )
        made = Decision(
            at_s=at_s,
            controller="controller-1",
            plan=str(len(self.decisions) + 1),
            round=str(len(self.decisions) + 1),
            by="send-rate",
            phase=self.phase,
            sentence=sentence,
            acted=self._is_told,
            action=action,
            reason=reason,
        )
        self.decisions.append(made)


def run(seconds: float, scenario: str) -> Run:
    """A run from time 0 that lasts this long."""
    world = World(scenario=scenario)
    samples = tuple(world.step(number * PERIOD_S) for number in range(int(seconds / PERIOD_S) + 1))
    return Run(samples=samples, decisions=tuple(world.decisions))


def view_at(shown: Run, mode: Mode, *, broken: bool = False, holding_gateways: int = 0) -> View:
    """What the controller shows after this run; with gateways that hold, there are so many of them."""
    now = shown.samples[-1]
    published = int(sum(sample.arrival_per_s for sample in shown.samples) * PERIOD_S)
    problem = "does not answer its monitoring page" if broken else None
    return View(
        name="pump-house",
        controller="controller-1",
        leader="controller-1",
        mode=mode,
        samples=shown.samples,
        decisions=shown.decisions[-50:],
        chain=ChainStates(
            gateways=tuple(
                _holding(_gateway(f"gateway-{number + 1}", now, published), number, now)
                for number in range(holding_gateways)
            )
            or (_gateway("gateway-1", now, published),),
            brokers=(
                BrokerState(name="broker-1", address="127.0.0.1:1883", healthy=True, connections=now.devices),
                BrokerState(name="broker-2", address="127.0.0.1:1884", healthy=not broken, problem=problem),
            ),
            nodes=tuple(_node(number, now, published) for number in range(now.nodes_working)),
        ),
        alarms=(f"broker-2 {problem}",) if problem else (),
        rules=_rules(now),
    )


def _rules(now: Sample) -> RulesState:
    """One that acts while devices are held, and one whose event does not come."""
    flooded = now.interval_s > 0
    acting = RuleState(
        name="more-nodes", on="overload", active=flooded, plan="in force" if flooded else "", step=2, steps=2
    )
    waiting = RuleState(name="evening", on="many-connections", active=False, steps=1)
    begun = (
        EventNotification(at_s=now.at_s - 12, event="overload", active=True),
        ActionPlan(
            at_s=now.at_s - 11, plan="3", rule="more-nodes", event="overload", state="in force", step=2, steps=2
        ),
    )
    return RulesState(
        name="evening.yaml",
        applied_at_s=now.at_s - 3600,
        rules=(acting, waiting),
        events={"overload": flooded, "many-connections": False},
        notices=begun if flooded else (),
    )


def _node(number: int, now: Sample, published: int) -> NodeState:
    return NodeState(
        name=f"node-{number + 1}",
        alive=True,
        slices=tuple(range(8))[number :: now.nodes_working],
        rows=published // now.nodes_working,
        cost_s=30.0 + number,
        limit_rows=NODE_PER_S * 12,
        limit_s=12.0,
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
        held=12 if now.classes else 0,
        classes={
            kind: ClassState(devices=round(now.devices * share), publishes=int(published * share))
            for kind, share in CLASSES.items()
        }
        if now.nodes_wanted is not None
        else {},
    )


def _holding(gateway: GatewayState, number: int, now: Sample) -> GatewayState:
    """The same gateway while half of its clients do not listen; the second of them is the latest."""
    clients = 400 if now.interval_s else 0
    waiting_s = 8 * max(0.0, now.interval_s - DEFAULT_INTERVAL_S)
    return msgspec.structs.replace(
        gateway,
        address=f"127.0.0.1:{1880 + number}",
        publishes=gateway.publishes // (number + 1),
        acknowledged=int(gateway.acknowledged / (number + 1) * 0.9),
        refused={"not MQTT": int(now.at_s) % 1_000 // 20, "no CONNECT in time": 14, "held too long": 1},
        held=5 * clients,
        held_clients={"its own rate": clients - 20, "the topics telemetry/+/alarm/#": 20} if clients else {},
        most_held=tuple(
            HeldClient(
                client_id=f"device-{place * 97:06d}",
                reason="its own rate",
                publishes=8,
                waiting_s=waiting_s - place / 8,
            )
            for place in range(5 if clients else 0)
        ),
        held_total=clients * 40,
        dropped={"too much waits": 3} if clients else {},
        admitting=12 if number else 0,
        versions={"3.1.1": now.devices - 90, "5 on 3.1.1": 90},
        overload=3 * number,
        processes=tuple(
            ProcessState(
                number=one + 1,
                pid=4_000 + 10 * number + one,
                connections=now.devices // 2,
                publishes=gateway.publishes // 2,
                cpu_share=0.3 + one / 10,
                late_s=0.002 + number / 20,
                draining=number == 1 and one == 1,
            )
            for one in range(2)
        ),
        replaced=number,
    )
