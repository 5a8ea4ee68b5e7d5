"""How many nodes there are: some work, some start, and one that is no longer wanted ends its message first."""

import heapq
from collections.abc import Callable, Iterator

import simpy

from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.scenario import Service
from tidegate.sim.timeline import Timeline


class SimulatedNode:
    """One node since it began to work. Numbers are never used twice, so counters never begin anew."""

    __slots__ = ("begun_s", "busy_s", "message", "number", "served", "served_at_s", "stopping")

    def __init__(self, number: int) -> None:
        self.number = number
        self.message: SimulatedMessage | None = None
        self.begun_s = self.busy_s = self.served_at_s = 0.0
        self.served = 0
        self.stopping = False

    def begin(self, message: SimulatedMessage, now_s: float) -> None:
        self.message, self.begun_s = message, now_s

    def end(self, now_s: float) -> SimulatedMessage:
        message = self.message
        assert message is not None
        self.message = None
        self.served, self.served_at_s = self.served + 1, now_s
        self.busy_s += now_s - self.begun_s
        return message


class SimulatedNodes:
    """``on_free`` hears of each node that may take a message, and hands it back with ``rest`` where none waits."""

    def __init__(
        self, timeline: Timeline, settings: Service, count: int, on_free: Callable[[SimulatedNode], None]
    ) -> None:
        self._timeline, self._settings, self._on_free = timeline, settings, on_free
        self._all: dict[int, SimulatedNode] = {number: SimulatedNode(number) for number in range(1, count + 1)}
        self._idle = list(self._all)  # a heap: the node that has been there longest takes the next message
        self._starting: dict[simpy.Event, int] = {}
        self._stopping = 0
        self._number = count
        self._seconds = self._counted_s = 0.0

    def __iter__(self) -> Iterator[SimulatedNode]:
        """Those that work, also for the last time."""
        return iter(self._all.values())

    @property
    def working(self) -> int:
        """Those that work and are to go on."""
        return len(self._all) - self._stopping

    @property
    def serving(self) -> int:
        return len(self._all) - len(self._idle)

    @property
    def starting(self) -> int:
        return len(self._starting)

    def seconds(self, now_s: float) -> float:
        """Node-seconds so far, from the wish for a node to its end."""
        self._seconds += (now_s - self._counted_s) * (len(self._all) + len(self._starting))
        self._counted_s = now_s
        return self._seconds

    def scale(self, wanted: int) -> None:
        """Start or stop nodes until so many are there or on their way, within the service's bounds."""
        self.seconds(self._timeline.now_s)
        wanted = min(max(wanted, self._settings.nodes_min), self._settings.nodes_max)
        while self.working + self.starting < wanted:
            self._add_one()
        while self.working + self.starting > wanted:
            self._remove_one()

    def take_idle(self) -> SimulatedNode | None:
        return self._all[heapq.heappop(self._idle)] if self._idle else None

    def rest(self, node: SimulatedNode) -> None:
        heapq.heappush(self._idle, node.number)

    def free(self, node: SimulatedNode) -> None:
        """Its message is done: it stops where it is no longer wanted, and else takes the next one."""
        if node.stopping:
            self.seconds(self._timeline.now_s)
            self._stopping -= 1
            del self._all[node.number]
        else:
            self._on_free(node)

    def _add_one(self) -> None:
        """A node that was about to stop goes on; else a new one starts."""
        kept = next((node for node in self._all.values() if node.stopping), None)
        if kept is not None:
            kept.stopping = False
            self._stopping -= 1
            return
        self._number += 1
        event = self._timeline.at(self._timeline.now_s + self._settings.start_s, self._started)
        self._starting[event] = self._number

    def _started(self, event: simpy.Event) -> None:
        number = self._starting.pop(event, None)
        if number is not None:
            self._all[number] = SimulatedNode(number)
            self._on_free(self._all[number])

    def _remove_one(self) -> None:
        """The newest goes first: one that only starts, else one that is idle, else one that works."""
        if self._starting:
            del self._starting[max(self._starting, key=lambda event: self._starting[event])]
        elif self._idle:
            number = max(self._idle)
            self._idle.remove(number)
            heapq.heapify(self._idle)
            del self._all[number]
        else:
            last = max((one for one in self._all.values() if not one.stopping), key=lambda one: one.number)
            last.stopping = True
            self._stopping += 1
