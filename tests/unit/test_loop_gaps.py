"""Time in which nothing was decided, rounds that are far apart, and a clock that is set back."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.credits import Credits, CreditsSettings
from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.control.send_rate.gradient2 import Gradient2, Gradient2Settings
from tidegate.control.send_rate.spark_pid import SparkPid, SparkPidSettings
from tidegate.loop.events import OVERLOAD, Event, EventRule
from tidegate.loop.machine import ControlLoop
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.window import Window
from tidegate.model.decisions import Mode
from tidegate.model.notices import EffectReport
from tidegate.model.observations import BrokerState, NodeState, Observation

FROZEN = Mode(frozen=True)
HOUR_S = 3_600.0


class Chain:
    """A loop with one event, a round every ``period_s``; devices follow nothing."""

    def __init__(self, rule: EventRule, period_s: float = 0.5) -> None:
        policy = SendRate(Gotin(GotinSettings()), lifetime_s=3 * period_s)
        self.loop = ControlLoop((policy,), {OVERLOAD: Event(rule)}, window_s=max(3.0, 2 * period_s))
        self.period_s, self.at_s, self.passed_s = period_s, 10_000.0, 0.0

    def observed(self, devices: int, connections: int | None) -> Observation:
        self.at_s, self.passed_s = self.at_s + self.period_s, self.passed_s + self.period_s
        return Observation(
            at_s=self.at_s,
            arrived=round(1_000 * self.passed_s),
            committed=round(100 * self.passed_s),
            head_age_s=3.0,
            devices=devices,
            brokers=(BrokerState(name="b", address="h:1", healthy=True, connections=connections),),
            nodes=(NodeState(name="n", alive=True, slices=(0,), rows=round(100 * self.passed_s), full=True),),
        )

    def rounds(self, count: int, devices: int = 1, connections: int | None = 1, mode: Mode | None = None) -> bool:
        """Whether the event is under way after these."""
        for _ in range(count):
            outcome = self.loop.tick(self.observed(devices, connections), mode or Mode())
            self.loop.carried_out(outcome.proposals)
        return self.loop.state.events[OVERLOAD].active

    def watched(self, count: int) -> None:
        for _ in range(count):
            self.loop.watch(self.observed(1, 1))


CROWDED = EventRule(when="devices > 500", for_s=10.0)
CONNECTED = EventRule(when="connections > 500", of="brokers", for_s=10.0)


def test_two_peaks_with_a_frozen_while_between_are_no_duration() -> None:
    chain = Chain(CROWDED)
    chain.rounds(10)
    assert not chain.rounds(1, devices=900)
    chain.rounds(40, mode=FROZEN)
    assert not chain.rounds(20, devices=900), "it holds for 9.5 s"
    assert chain.rounds(1, devices=900)


def test_two_peaks_with_another_leader_between_are_no_duration() -> None:
    chain = Chain(CROWDED)
    chain.rounds(10)
    chain.rounds(1, devices=900)
    chain.watched(40)
    assert not chain.rounds(1, devices=900)


def test_two_peaks_with_a_silent_source_between_are_no_duration() -> None:
    chain = Chain(CONNECTED)
    chain.rounds(10)
    chain.rounds(1, connections=900)
    chain.rounds(40, connections=None)
    assert not chain.rounds(1, connections=900)


def test_a_source_that_is_silent_for_a_moment_does_not_break_a_duration() -> None:
    chain = Chain(CONNECTED)
    chain.rounds(10)
    chain.rounds(10, connections=900)
    chain.rounds(6, connections=None)
    assert chain.rounds(5, connections=900)


def test_what_ends_an_event_begins_anew_after_a_gap_too() -> None:
    chain = Chain(EventRule(when="devices > 500", until_for_s=10.0))
    chain.rounds(10)
    assert chain.rounds(1, devices=900)
    chain.rounds(1)
    chain.rounds(40, mode=FROZEN)
    assert chain.rounds(20)
    assert not chain.rounds(1)


@pytest.mark.parametrize("period_s", [10.0, 60.0])
def test_rounds_that_are_far_apart_are_no_gap(period_s: float) -> None:
    chain = Chain(EventRule(when="devices > 500", for_s=2 * period_s), period_s)
    chain.rounds(10)
    assert [chain.rounds(1, devices=900) for _ in range(3)] == [False, False, True]


def test_a_stall_is_no_usual_gap() -> None:
    window = Window(3.0)
    for at_s in (0.0, 0.5, 1.0, 21.0):
        window.add(Observation(at_s=at_s, arrived=0, committed=0, head_age_s=0.0, devices=0))
    assert window.round_s == 0.5


@pytest.mark.parametrize("period_s", [0.5, 6.0, 20.0, 60.0])
def test_effects_are_judged_however_far_apart_rounds_are(period_s: float) -> None:
    """Nobody follows the advice, and that is found out."""
    chain = Chain(EventRule(when="head_age_s > 1"), period_s)
    chain.rounds(round(1_200 / period_s), devices=500)
    reports = [one for one in chain.loop.state.notices if isinstance(one, EffectReport)]
    assert reports
    assert not reports[0].shown


# -- a clock that is set back


def test_an_event_goes_on_from_now_where_the_clock_was_set_back() -> None:
    chain = Chain(CROWDED)
    chain.rounds(10)
    chain.rounds(4, devices=900)
    chain.at_s -= HOUR_S
    assert chain.rounds(40, devices=900), "a window of 3 s, and 10 s"


def seen(at_s: float, *, overload: bool) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=overload,
        waiting=5_000 if overload else 0,
        head_age_s=5.0 if overload else 0.0,
        arrival_per_s=200.0,
        departure_per_s=100.0,
        devices=100,
        node_rate_per_s=100.0,
    )


@pytest.mark.parametrize(
    "policy",
    [Gotin(GotinSettings()), Credits(CreditsSettings()), Gradient2(Gradient2Settings()), SparkPid(SparkPidSettings())],
    ids=["gotin", "credits", "gradient2", "spark-pid"],
)
def test_an_algorithm_goes_on_where_the_clock_was_set_back(policy) -> None:  # type: ignore[no-untyped-def]
    state = policy.initial()
    for second in range(20):
        state, _ = policy.step(state, seen(10_000.0 + second, overload=True))
    state, _ = policy.step(state, seen(10_020.0, overload=False))
    back_s = 10_020.0 - HOUR_S
    moments = []
    for half in range(1, 11):
        state, _ = policy.step(state, seen(back_s + half / 2, overload=False))
        moments.append(state.stepped_at_s - back_s)
    assert max(moments) <= 5.0
    assert len(set(moments)) >= 4, "a step a second"
