"""A flood in virtual time: the real control loop against a small model of devices, log and micro-batches.

100 devices send twice a second, which the tables take easily; then 800 more do for 35 s, which is 3.6 times what the
tables take. Devices hear advice with their next message, and pace themselves with the same object as real ones.
"""

import heapq
import random
from dataclasses import dataclass, field

import pytest

from tidegate.controller.settings import ControllerSettings
from tidegate.devices.pacing import Pacing
from tidegate.model.actions import Advise
from tidegate.model.advice import Advice
from tidegate.model.decisions import Mode
from tidegate.model.observations import NodeState, Observation
from tidegate.model.view import Sample

DEFAULT_S = 0.5
PERIOD_S = 0.5


@dataclass
class World:
    """What is outside the controller. ``capacity_per_s`` holds for large batches; each costs ``overhead_s`` more."""

    capacity_per_s: float = 500.0
    overhead_s: float = 0.0
    rows_per_batch_max: int = 500
    calm: int = 100
    flood: int = 800
    flood_from_s: float = 15.0
    flood_to_s: float = 50.0
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    arrived: list[float] = field(default_factory=list)  # when each message was acknowledged
    committed: int = 0
    advice: tuple[float, float] = (0.0, 0.0)  # interval, and until when it holds
    ages_s: list[tuple[float, float]] = field(default_factory=list)  # commit time and age of each message

    def __post_init__(self) -> None:
        self._sends: list[tuple[float, int]] = []  # when, which device
        self._pacing = [Pacing(DEFAULT_S, self.chance) for _ in range(self.calm + self.flood)]
        self._batch: tuple[float, int] | None = None  # when it commits, up to which message
        self._cut_s: float | None = None  # when it began, if more was waiting than it could take
        self._limit = (0.0, 0.0)  # rows and seconds of such batches
        for device in range(self.calm + self.flood):
            begin = 0.0 if device < self.calm else self.flood_from_s
            heapq.heappush(self._sends, (begin + self.chance.random() * DEFAULT_S, device))

    def devices(self, at_s: float) -> int:
        return self.calm + (self.flood if self.flood_from_s <= at_s < self.flood_to_s else 0)

    def run_to(self, end_s: float, step_s: float = 0.01) -> None:
        start = round((end_s - PERIOD_S) / step_s)
        for tick in range(start + 1, round(end_s / step_s) + 1):
            self._send(tick * step_s)
            self._process(tick * step_s)

    def _send(self, now_s: float) -> None:
        while self._sends[0][0] <= now_s:
            at_s, device = heapq.heappop(self._sends)
            if device >= self.calm and at_s >= self.flood_to_s:
                heapq.heappush(self._sends, (float("inf"), device))
                continue
            pacing, (advised_s, until_s) = self._pacing[device], self.advice
            if pacing.due_s(at_s) > at_s:  # its advice lapsed, and the time to ask again was earlier than its turn
                heapq.heappush(self._sends, (pacing.due_s(at_s), device))
                continue
            self.arrived.append(at_s)
            pacing.sent(at_s)
            if at_s < until_s:
                pacing.advise(Advice(interval_s=advised_s, lifetime_s=until_s - at_s), at_s)
            heapq.heappush(self._sends, (pacing.due_s(at_s), device))

    def _process(self, now_s: float) -> None:
        if self._batch is not None and self._batch[0] <= now_s:
            done_s, upto = self._batch
            self.ages_s += [(done_s, done_s - at_s) for at_s in self.arrived[self.committed : upto]]
            if self._cut_s is not None:
                self._limit = (self._limit[0] + upto - self.committed, self._limit[1] + done_s - self._cut_s)
            self.committed, self._batch = upto, None
        waiting = len(self.arrived) - self.committed
        if self._batch is None and waiting:
            rows = min(waiting, self.rows_per_batch_max)
            self._cut_s = now_s if rows < waiting else None
            duration_s = max(0.25, self.overhead_s + rows / self.capacity_per_s * self.chance.uniform(0.9, 1.1))
            self._batch = (now_s + duration_s, self.committed + rows)

    def observe(self, now_s: float) -> Observation:
        waits = self.committed < len(self.arrived)
        return Observation(
            at_s=now_s,
            arrived=len(self.arrived),
            committed=self.committed,
            head_age_s=now_s - self.arrived[self.committed] if waits else 0.0,
            devices=self.devices(now_s),
            committed_at_s=self.ages_s[-1][0] if self.ages_s else 0.0,
            nodes=(
                NodeState(
                    name="node-1",
                    alive=True,
                    slices=(),
                    rows=self.committed,
                    limit_rows=self._limit[0],
                    limit_s=self._limit[1],
                    full=self._cut_s is not None,
                ),
            ),
        )


@dataclass
class Run:
    world: World
    samples: list[Sample]
    decisions: int

    def during(self, begin_s: float, end_s: float) -> list[Sample]:
        return [sample for sample in self.samples if begin_s <= sample.at_s < end_s]

    def mean_age_s(self) -> float:
        """Of messages, over the flood: from acknowledgement to table."""
        begin_s, end_s = self.world.flood_from_s, self.world.flood_to_s
        ages = [age for at_s, age in self.world.ages_s if begin_s <= at_s < end_s]
        return sum(ages) / len(ages)

    def mean_head_age_s(self) -> float:
        samples = self.during(self.world.flood_from_s, self.world.flood_to_s)
        return sum(sample.age_s for sample in samples) / len(samples)

    def capacity_used(self) -> float:
        world = self.world
        done = sum(world.flood_from_s <= at_s < world.flood_to_s for at_s, _ in world.ages_s)
        return done / ((world.flood_to_s - world.flood_from_s) * world.capacity_per_s)


def run(world: World | None = None, *, end_s: float = 90.0, **chosen) -> Run:
    world = world or World()
    loop = ControllerSettings(period_s=PERIOD_S, default_interval_s=DEFAULT_S, **chosen).control_loop()
    samples, decisions = [], 0
    for tick in range(1, round(end_s / PERIOD_S) + 1):
        now_s = tick * PERIOD_S
        world.run_to(now_s)
        outcome = loop.tick(world.observe(now_s), Mode())
        loop.carried_out(outcome.proposals)
        samples.append(outcome.sample)
        for proposal in outcome.proposals:
            decisions += proposal.recorded
            action = proposal.action
            assert isinstance(action, Advise)
            world.advice = (action.advice.interval_s, now_s + action.advice.lifetime_s)
    return Run(world, samples, decisions)


def test_without_protection_data_grows_old_and_stays_old() -> None:
    unprotected = run(policy="none")
    assert unprotected.samples[-1].age_s > 30
    assert unprotected.mean_age_s() > 10
    assert unprotected.decisions == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rows_per_batch_max", [250, 500])
def test_protection_keeps_data_fresh_and_the_tables_busy(seed: int, rows_per_batch_max: int) -> None:
    protected = run(World(chance=random.Random(seed), rows_per_batch_max=rows_per_batch_max))
    assert protected.mean_age_s() <= 4.0
    assert max(sample.age_s for sample in protected.samples) < 7
    assert protected.capacity_used() >= 0.93


def test_before_the_flood_nobody_is_held_and_after_it_everybody_returns_to_the_default() -> None:
    protected = run()
    assert {sample.interval_s for sample in protected.during(0, 15)} == {0.0}
    assert all(sample.interval_s == 0 for sample in protected.during(75, 90))
    assert protected.samples[-1].phase == "idle"
    assert protected.samples[-1].age_s < 1


def test_an_early_event_and_a_deep_cut_beat_the_published_constants_in_this_flood() -> None:
    """With k_protect = 0.98 the queue gets shorter by 10 messages a second: the flood is over before it is."""
    event = {"overload": "head_age_s > 1.5", "overload_for_s": 0.4, "overload_until": None}
    published = run(**event, options={"k_protect": 0.98, "k_recover": 1.1})
    assert run().mean_age_s() < published.mean_age_s() / 2


def test_a_node_that_became_slower_is_followed_down() -> None:
    """A third of the capacity goes in mid-flood: the queue is bounded again at the new rate."""
    world = World(flood_to_s=80.0)
    loop = ControllerSettings(period_s=PERIOD_S, default_interval_s=DEFAULT_S).control_loop()
    ages_s = []
    for tick in range(1, 161):
        now_s = tick * PERIOD_S
        world.capacity_per_s = 500.0 if now_s < 40 else 330.0
        world.run_to(now_s)
        outcome = loop.tick(world.observe(now_s), Mode())
        loop.carried_out(outcome.proposals)
        ages_s.append(outcome.sample.age_s)
        for proposal in outcome.proposals:
            action = proposal.action
            assert isinstance(action, Advise)
            world.advice = (action.advice.interval_s, now_s + action.advice.lifetime_s)
    assert sum(ages_s[100:160]) / 60 < 4.5
