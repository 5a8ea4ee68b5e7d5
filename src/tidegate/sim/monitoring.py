"""Sensors: what the controller gets to see of the world, late and wrong as in life.

Gauges are multiplied by ``max(0, 1 + noise * N(0, 1))``. A counter is wrong by ``noise`` times its growth in the last
period, drawn anew each time, so errors do not add up; and it never falls. The number of devices is exact.
"""

import random
from collections.abc import Mapping

from tidegate.control.limiting.credits import OWN_RATE
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation
from tidegate.sim.gateway import SimulatedGateway
from tidegate.sim.service import ServiceModel
from tidegate.sim.tally import LoadTally


class _Counter:
    """The same counter as it is, and as it was reported."""

    __slots__ = ("reported", "true")

    def __init__(self) -> None:
        self.true = self.reported = 0.0


class SimulatedSensors:
    def __init__(self, noise: float, chance: random.Random) -> None:
        self._noise, self._chance = noise, chance
        self._counters: dict[str, _Counter] = {}

    def observe(
        self,
        now_s: float,
        tallies: Mapping[str, LoadTally],
        service: ServiceModel,
        gateway: SimulatedGateway | None = None,
    ) -> Observation:
        sent = sum(tally.sent for tally in tallies.values())
        return Observation(
            at_s=now_s,
            arrived=round(self._counted("arrived", sent)),
            committed=round(self._counted("committed", service.done)),
            head_age_s=self._gauge(service.head_age_s(now_s)),
            devices=sum(tally.devices for tally in tallies.values()),
            committed_at_s=service.done_at_s,
            queued=round(self._gauge(service.waiting)),
            starting=service.nodes.starting,
            gateways=(self._gateway(now_s, tallies, sent, gateway),),
            nodes=tuple(self._nodes(service)),
        )

    def _gateway(
        self, now_s: float, tallies: Mapping[str, LoadTally], sent: int, gateway: SimulatedGateway | None
    ) -> GatewayState:
        held_devices = 0 if gateway is None else gateway.held_devices
        return GatewayState(
            name="gateway-1",
            address="simulated:1883",
            measured_at_s=now_s,
            connections=sum(tally.devices for tally in tallies.values()),
            publishes=sent,
            acknowledged=sent,
            advised=0,
            held=0 if gateway is None else gateway.held,
            held_clients={OWN_RATE: held_devices} if held_devices else {},
            classes={
                name: ClassState(devices=tally.devices, publishes=round(self._counted(f"class {name}", tally.sent)))
                for name, tally in tallies.items()
            },
        )

    def _nodes(self, service: ServiceModel) -> list[NodeState]:
        """A node that serves one message at a time is at its limit whenever it serves."""
        return [
            NodeState(
                name=f"node-{node.number}",
                alive=True,
                slices=(),
                rows=node.served,
                cost_s=node.busy_s,
                committed_at_s=node.served_at_s,
                limit_rows=self._counted(f"rows {node.number}", node.served),
                limit_s=self._counted(f"busy {node.number}", node.busy_s),
            )
            for node in service.nodes
            if not node.stopping
        ]

    def _gauge(self, value: float) -> float:
        return value * max(0.0, 1 + self._noise * self._chance.gauss(0, 1)) if self._noise else value

    def _counted(self, name: str, true: float) -> float:
        if not self._noise:
            return true
        counter = self._counters.setdefault(name, _Counter())
        error = self._noise * (true - counter.true) * self._chance.gauss(0, 1)
        counter.true, counter.reported = true, max(counter.reported, true + error)
        return counter.reported
