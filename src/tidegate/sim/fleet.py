"""The devices of one class, as many as its pattern says: the last that came is the first to leave."""

import itertools
import math
from collections.abc import Generator, Iterator

import simpy

from tidegate.devices.pacing import Pacing
from tidegate.devices.pattern import Pattern
from tidegate.sim.chance import stream
from tidegate.sim.devices import EventDevice, PacedDevice, SimulatedDevice, Surroundings
from tidegate.sim.samples import GridSamples


class SimulatedFleet:
    """Device i keeps its phase, its hearing and its advice however often it leaves and comes back."""

    def __init__(self, around: Surroundings, seed: int) -> None:
        self._around, self._seed = around, seed
        self._devices: list[SimulatedDevice] = []
        self._connected = 0
        around.timeline.process(self._follow(around.load.devices()))

    def end(self) -> None:
        """The run is over: count what is still connected."""
        while self._connected:
            self._leave()

    def demand_per_s(self, now_s: float) -> float:  # noqa: ARG002 - a recording's depends on it
        return self._connected / self._around.load.default_interval_s

    def _follow(self, pattern: Pattern) -> Generator[simpy.Event, None, None]:
        timeline = self._around.timeline
        for at_s, step in changes(pattern):
            if at_s > timeline.now_s:
                yield timeline.wait(at_s - timeline.now_s)
            if step > 0:
                self._connect()
            else:
                self._leave()

    def _connect(self) -> None:
        if self._connected == len(self._devices):
            self._devices.append(self._device(self._connected))
        self._devices[self._connected].connect()
        self._connected += 1

    def _leave(self) -> None:
        self._connected -= 1
        self._devices[self._connected].leave()

    def _device(self, index: int) -> SimulatedDevice:
        around, load = self._around, self._around.load
        chance = stream(self._seed, "device", load.name, index)
        phase_s = chance.random() * load.default_interval_s
        # Spread evenly over the devices, so that every count of them has its share.
        listens = math.floor((index + 1) * load.deaf_share) == math.floor(index * load.deaf_share)
        if load.event_driven:
            return EventDevice(around, chance, listens=listens)
        samples = GridSamples(phase_s, load.default_interval_s)
        return PacedDevice(around, Pacing(load.default_interval_s, chance, load.name), samples, listens=listens)


def changes(pattern: Pattern) -> Iterator[tuple[float, int]]:
    """When the number of devices changes by one, and which way. Between two points a device comes, or leaves, when
    the line passes the half before the next whole number, which is where ``Pattern.devices`` rounds."""
    count = pattern.points[0][1]
    yield from itertools.repeat((0.0, 1), count)
    for (from_s, before), (to_s, after) in itertools.pairwise(pattern.points):
        step = 1 if after > before else -1
        for passed in range(abs(after - before)):
            share = (passed + 0.5) / abs(after - before)
            yield from_s + share * (to_s - from_s), step
