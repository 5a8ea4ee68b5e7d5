"""One world in virtual time: devices, queue, nodes and sensors around a controller."""

import simpy

from tidegate.control.send_rate.oracle import Truth
from tidegate.loop.machine import ControlLoop
from tidegate.model.advice import Advice
from tidegate.model.observations import Observation
from tidegate.sim.chance import stream
from tidegate.sim.controlling import SimulatedController
from tidegate.sim.devices import Surroundings
from tidegate.sim.fleet import SimulatedFleet
from tidegate.sim.gateway import SimulatedGateway
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.monitoring import SimulatedSensors
from tidegate.sim.recording import Recording
from tidegate.sim.replay import Player
from tidegate.sim.scenario import Load, Scenario
from tidegate.sim.service import ServiceModel
from tidegate.sim.tally import LoadTally, QueueTally
from tidegate.sim.timeline import Timeline


class World:
    """Built once, run once. Who measures it reads ``tallies``, ``service`` and ``controller`` between two moments."""

    def __init__(
        self,
        scenario: Scenario,
        loop: ControlLoop,
        seed: int,
        *,
        nodes_at_start: int | None = None,
        recorded: Recording | None = None,
    ) -> None:
        self.scenario = scenario
        self.timeline = Timeline()
        self.tallies = {load.name: LoadTally() for load in scenario.classes}
        self.queue = QueueTally()
        self.service = ServiceModel(
            self.timeline,
            scenario.service,
            nodes_at_start=scenario.service.nodes_at_start if nodes_at_start is None else nodes_at_start,
            chance=stream(seed, "service"),
            on_start=self._started,
            on_done=self._done,
        )
        self.controller = SimulatedController(loop, self.service.nodes.scale)
        enforcement = scenario.gateway
        self.gateway = (
            SimulatedGateway(self.timeline, enforcement, self.controller.advice, self._send)
            if enforcement.enforce
            else None
        )
        self._loads = {load.name: load for load in scenario.classes}
        self._sensors = SimulatedSensors(scenario.monitoring.noise, stream(seed, "monitoring"))
        self._senders: list[SimulatedFleet | Player] = [
            SimulatedFleet(self._around(load), seed) for load in scenario.classes if load.pattern is not None
        ]
        if recorded is not None:
            around = {load.name: self._around(load) for load in scenario.classes}
            self._senders.append(Player(recorded, around, seed))
        self.timeline.at(scenario.monitoring.period_s, self._observe)

    def run(self, until_s: float) -> None:
        self.timeline.run(until_s)

    def end(self) -> None:
        """Count what is still under way; nothing may run after this."""
        for sender in self._senders:
            sender.end()

    def demand_per_s(self) -> float:
        """What the connected devices would send together if nobody held them."""
        return sum(sender.demand_per_s(self.timeline.now_s) for sender in self._senders)

    def capacity_per_s(self) -> float:
        """The true capacity, for messages in the mixture that advice asks for at this moment."""
        now_s = self.timeline.now_s
        advice = self.controller.advice(now_s)
        rates = {name: self.tallies[name].devices / _gap_s(load, advice) for name, load in self._loads.items()}
        total = sum(rates.values())
        cost = sum(rate * self._loads[name].cost for name, rate in rates.items()) / total if total else 1.0
        return self.service.capacity_per_s(now_s, cost)

    def truth(self) -> Truth:
        """For the oracle alone: everybody else sees what sensors deliver."""
        return Truth(
            capacity_per_s=self.capacity_per_s(),
            devices=sum(tally.devices for tally in self.tallies.values()),
            waiting=self.service.waiting,
            nodes_working=self.service.nodes.working,
        )

    def _around(self, load: Load) -> Surroundings:
        return Surroundings(
            self.timeline,
            load,
            self.tallies[load.name],
            self._send,
            acknowledgement_s=self.scenario.acknowledgement_s,
            gateway=self.gateway,
        )

    def _send(self, message: SimulatedMessage) -> Advice | None:
        self.tallies[message.device_class].arrived()
        self.service.arrive(message)
        now_s = message.arrived_s
        self.queue.changed(len(self.service.queue), now_s)
        return self.controller.advice(now_s)

    def _started(self, message: SimulatedMessage, now_s: float) -> None:
        self.tallies[message.device_class].delays_s.append(now_s - message.arrived_s)
        self.queue.changed(len(self.service.queue), now_s)

    def _done(self, message: SimulatedMessage, now_s: float) -> None:
        self.tallies[message.device_class].done(message, now_s)

    def _observe(self, _: simpy.Event) -> None:
        now_s, monitoring = self.timeline.now_s, self.scenario.monitoring
        observation = self._sensors.observe(now_s, self.tallies, self.service, self.gateway)
        self.timeline.at(now_s + monitoring.period_s, self._observe)
        if monitoring.delay_s == 0:
            self._control(observation)
        else:
            self.timeline.at(now_s + monitoring.delay_s, lambda _: self._control(observation))

    def _control(self, observation: Observation) -> None:
        now_s = self.timeline.now_s
        self.controller.hear(observation, now_s)
        if self.gateway is not None:
            self.gateway.follow(now_s)


def _gap_s(load: Load, advice: Advice | None) -> float:
    """Between two messages of a device of this class that obeys."""
    if advice is None:
        return load.default_interval_s
    if load.event_driven:
        return load.default_interval_s * float(advice.dead_band_of(load.name) ** load.elasticity)
    return max(load.default_interval_s, advice.interval_of(load.name))
