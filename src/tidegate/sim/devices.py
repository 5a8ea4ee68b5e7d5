"""Simulated devices: those that send at an interval, and those that send when something changes.

Both hear advice with the acknowledgement of their own message and at no other time, and obey it for what is left of
its lifetime. A device that leaves falls silent; what it had not sent by then is never sent.
"""

import abc
import math
import random

import msgspec
import simpy

from tidegate.devices.pacing import Pacing
from tidegate.model.advice import Advice
from tidegate.sim.gateway import Send, SimulatedGateway
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.samples import Samples
from tidegate.sim.scenario import Load
from tidegate.sim.tally import LoadTally
from tidegate.sim.timeline import Timeline


class Surroundings:
    """What all devices of a class share. Without a gateway everything that is sent arrives at once."""

    __slots__ = ("acknowledgement_s", "gateway", "load", "send", "tally", "timeline")

    def __init__(
        self,
        timeline: Timeline,
        load: Load,
        tally: LoadTally,
        send: Send,
        *,
        acknowledgement_s: float,
        gateway: SimulatedGateway | None,
    ) -> None:
        self.timeline, self.load, self.tally = timeline, load, tally
        self.send, self.acknowledgement_s, self.gateway = send, acknowledgement_s, gateway


class SimulatedDevice(abc.ABC):
    """What both kinds do alike: come, go, send, and hear advice."""

    def __init__(self, around: Surroundings, *, listens: bool) -> None:
        self._around, self._listens = around, listens
        gateway = around.gateway
        self._connection = None if gateway is None else gateway.connection(around.load, self._went_on)
        self._timer: simpy.Event | None = None  # None while it is away
        self._interval_s, self._since_s = around.load.default_interval_s, 0.0

    def connect(self) -> None:
        self._around.tally.connected()
        self._since_s = self._around.timeline.now_s
        self._begin(self._since_s)
        self._set_timer()

    def leave(self) -> None:
        self._account(self._around.timeline.now_s)
        self._around.tally.left()
        self._around.tally.generated += self._demand(self._around.timeline.now_s)
        self._timer = None
        if self._connection is not None:
            self._connection.leave(self._around.timeline.now_s)

    @property
    def is_connected(self) -> bool:
        return self._timer is not None

    @abc.abstractmethod
    def _begin(self, now_s: float) -> None:
        """It is connected from now on."""

    @abc.abstractmethod
    def _demand(self, now_s: float) -> float:
        """How many messages it would have sent at its default, since it connected."""

    @abc.abstractmethod
    def _next_s(self, now_s: float) -> float:
        """When to look again whether something is to be sent."""

    @abc.abstractmethod
    def _message(self, now_s: float) -> tuple[int, float]:
        """Send: how many samples the message stands for, and the middle of their times."""

    @abc.abstractmethod
    def _obey(self, advice: Advice, now_s: float) -> None:
        """Advice is in force from now on, for its lifetime."""

    @abc.abstractmethod
    def _in_force_s(self, now_s: float) -> float:
        """The interval it keeps to, or its mean."""

    def _account(self, now_s: float) -> None:
        """The interval of the time that has passed is known: count it."""
        self._around.tally.kept(self._interval_s, now_s - self._since_s)
        self._interval_s, self._since_s = self._in_force_s(now_s), now_s

    def _set_timer(self) -> None:
        timeline = self._around.timeline
        has_room = self._connection is None or self._connection.has_room
        self._timer = timeline.at(self._next_s(timeline.now_s) if has_room else math.inf, self._wake)

    def _wake(self, event: simpy.Event) -> None:
        if event is not self._timer:  # it left meanwhile, or heard advice
            return
        around, now_s = self._around, self._around.timeline.now_s
        if self._next_s(now_s) <= now_s:
            samples, middle_s = self._message(now_s)
            message = SimulatedMessage(around.load.name, around.load.cost, now_s, samples, middle_s)
            if self._connection is None:
                self._acknowledged(around.send(message), now_s)
            else:
                self._connection.send(message)
        self._account(now_s)
        self._set_timer()

    def _went_on(self, advice: Advice | None, now_s: float) -> None:
        """The gateway let a message go on: there is room for another."""
        self._acknowledged(advice, now_s)
        self._set_timer()

    def _acknowledged(self, advice: Advice | None, now_s: float) -> None:
        if advice is None or not self._listens:
            return
        delay_s = self._around.acknowledgement_s
        if delay_s == 0:
            self._obey(advice, now_s)
        else:
            self._around.timeline.at(now_s + delay_s, lambda _: self._hear(advice, delay_s))

    def _hear(self, advice: Advice, delay_s: float) -> None:
        now_s, left_s = self._around.timeline.now_s, advice.lifetime_s - delay_s
        if not self.is_connected or left_s <= 0:
            return
        self._obey(msgspec.structs.replace(advice, lifetime_s=left_s), now_s)
        self._account(now_s)
        self._set_timer()


class PacedDevice(SimulatedDevice):
    """Samples at its default interval or as recorded, and sends no faster than its pacing says, all samples at once."""

    def __init__(self, around: Surroundings, pacing: Pacing, samples: Samples, *, listens: bool) -> None:
        super().__init__(around, listens=listens)
        self._pacing, self._samples = pacing, samples

    def _begin(self, now_s: float) -> None:
        self._samples.begin(now_s)

    def _demand(self, now_s: float) -> float:
        return self._samples.until(now_s)

    def _next_s(self, now_s: float) -> float:
        return max(self._pacing.due_s(now_s), self._samples.next_s)

    def _message(self, now_s: float) -> tuple[int, float]:
        self._pacing.sent(now_s)
        return self._samples.take(now_s)

    def _obey(self, advice: Advice, now_s: float) -> None:
        self._pacing.advise(advice, now_s)

    def _in_force_s(self, now_s: float) -> float:
        return max(self._pacing.interval_s(now_s), self._around.load.default_interval_s)


class EventDevice(SimulatedDevice):
    """Sends when something changes by more than its dead band: gaps are exponential, and intervals mean nothing to it.

    With a dead band d times as wide the mean gap is ``default_interval_s * d ** elasticity``. A change of the band in
    the middle of a gap stretches what is left of it.
    """

    def __init__(self, around: Surroundings, chance: random.Random, *, listens: bool) -> None:
        super().__init__(around, listens=listens)
        self._chance = chance
        self._mean_s = around.load.default_interval_s
        self._due_s = self._lapses_s = math.inf
        self._advice: Advice | None = None
        self._connected_s = 0.0

    def _begin(self, now_s: float) -> None:
        self._connected_s = now_s
        self._let_lapse(now_s)
        self._due_s = now_s + self._chance.expovariate(1 / self._mean_s)

    def _demand(self, now_s: float) -> float:
        return (now_s - self._connected_s) / self._around.load.default_interval_s

    def _next_s(self, now_s: float) -> float:
        self._let_lapse(now_s)
        return min(self._due_s, self._lapses_s)

    def _message(self, now_s: float) -> tuple[int, float]:
        self._due_s = now_s + self._chance.expovariate(1 / self._mean_s)
        return 1, now_s

    def _obey(self, advice: Advice, now_s: float) -> None:
        self._let_lapse(now_s)
        self._follow(advice, now_s)

    def _follow(self, advice: Advice | None, now_s: float) -> None:
        load = self._around.load
        band = 1.0 if advice is None else advice.dead_band_of(load.name)
        self._stretch(load.default_interval_s * band**load.elasticity, now_s)
        self._advice = advice
        self._lapses_s = math.inf if advice is None else now_s + advice.lifetime_s

    def _in_force_s(self, now_s: float) -> float:
        self._let_lapse(now_s)
        return self._mean_s

    def _let_lapse(self, now_s: float) -> None:
        while now_s >= self._lapses_s:
            assert self._advice is not None
            self._follow(self._advice.after(self._advice.lifetime_s), self._lapses_s)

    def _stretch(self, mean_s: float, now_s: float) -> None:
        self._due_s = now_s + (self._due_s - now_s) * mean_s / self._mean_s
        self._mean_s = mean_s
