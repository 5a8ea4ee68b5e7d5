"""Virtual time: SimPy's event queue, with plain callbacks where a process per message would cost more than it says."""

import math
from collections.abc import Callable, Generator
from typing import Any

import simpy

Callback = Callable[[simpy.Event], None]


class Timeline:
    """The time of one run, in seconds from 0."""

    def __init__(self) -> None:
        self._environment = simpy.Environment()

    @property
    def now_s(self) -> float:
        return self._environment.now

    def at(self, when_s: float, callback: Callback) -> simpy.Event:
        """Call it then, with the event that is returned here; never, where ``when_s`` is without bound.

        Times are differences to now inside SimPy, so the moment may come a rounding error early: who must not act
        before ``when_s`` compares, and asks again.
        """
        if when_s == math.inf:
            return self._environment.event()
        event = self._environment.timeout(max(0.0, when_s - self._environment.now))
        event.callbacks.append(callback)
        return event

    def process(self, steps: Generator[simpy.Event, Any, None]) -> None:
        self._environment.process(steps)

    def wait(self, seconds: float) -> simpy.Event:
        """For processes: ``yield timeline.wait(2)``."""
        return self._environment.timeout(seconds)

    def run(self, until_s: float) -> None:
        """Everything before ``until_s``; what happens at that very moment is left out."""
        self._environment.run(until=until_s)
