"""The queue and who serves it: first in, first out, and each node one message at a time.

A message takes its node ``cost / rate`` seconds, with noise, stretched by the capacity factor. Where there is an
external cap, the node then calls one external service that all share: it waits for its turn there and for
``1 / cap`` seconds of service, and is busy all that time.
"""

import random
from collections import deque
from collections.abc import Callable

from tidegate.sim.capacity import CapacityCurve
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.nodes import SimulatedNode, SimulatedNodes
from tidegate.sim.scenario import Service
from tidegate.sim.timeline import Timeline

Served = Callable[[SimulatedMessage, float], None]  # a message, and when it happened


class ServiceModel:
    def __init__(
        self,
        timeline: Timeline,
        settings: Service,
        *,
        nodes_at_start: int,
        chance: random.Random,
        on_start: Served,
        on_done: Served,
    ) -> None:
        self._timeline, self._settings, self._chance = timeline, settings, chance
        self._on_start, self._on_done = on_start, on_done
        self._curve = CapacityCurve(settings.capacity)
        self._external_free_s = 0.0
        self.queue: deque[SimulatedMessage] = deque()
        self.done, self.done_at_s = 0, 0.0
        self.nodes = SimulatedNodes(timeline, settings, nodes_at_start, self._take_next)

    def arrive(self, message: SimulatedMessage) -> None:
        idle = self.nodes.take_idle()
        if idle is None:
            self.queue.append(message)
        else:
            self._serve(idle, message)

    @property
    def waiting(self) -> int:
        """In the queue and in service."""
        return len(self.queue) + self.nodes.serving

    def head_age_s(self, now_s: float) -> float:
        """Age of the oldest message that is not done."""
        oldest_s = [node.message.arrived_s for node in self.nodes if node.message is not None]
        if self.queue:
            oldest_s.append(self.queue[0].arrived_s)
        return now_s - min(oldest_s) if oldest_s else 0.0

    def capacity_per_s(self, now_s: float, cost: float) -> float:
        """What the working nodes can do per second of messages that cost so much in the mean."""
        rate = self._settings.rate_per_s * self._curve.factor(now_s)
        if rate == 0:
            return 0.0
        cap = self._settings.external_cap_per_s
        if cap is None:
            return self.nodes.working * rate / cost
        return min(cap, self.nodes.working / (cost / rate + 1 / cap))

    def _take_next(self, node: SimulatedNode) -> None:
        if self.queue:
            self._serve(node, self.queue.popleft())
        else:
            self.nodes.rest(node)

    def _serve(self, node: SimulatedNode, message: SimulatedMessage) -> None:
        now_s, settings = self._timeline.now_s, self._settings
        node.begin(message, now_s)
        self._on_start(message, now_s)
        work_s = message.cost / settings.rate_per_s
        if settings.noise:
            work_s *= self._chance.uniform(1 - settings.noise, 1 + settings.noise)
        after = self._finished if settings.external_cap_per_s is None else self._call_external
        self._timeline.at(self._curve.done_s(now_s, work_s), lambda _: after(node))

    def _call_external(self, node: SimulatedNode) -> None:
        """The external service takes calls in the order in which they come."""
        cap = self._settings.external_cap_per_s
        assert cap is not None
        self._external_free_s = max(self._external_free_s, self._timeline.now_s) + 1 / cap
        self._timeline.at(self._external_free_s, lambda _: self._finished(node))

    def _finished(self, node: SimulatedNode) -> None:
        now_s = self._timeline.now_s
        message = node.end(now_s)
        self.done, self.done_at_s = self.done + 1, now_s
        self._on_done(message, now_s)
        self.nodes.free(node)
