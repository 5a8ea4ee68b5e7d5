"""The simulator's small parts, each against values worked out by hand."""

import math
import random

import pytest

from tidegate.devices.pattern import Pattern
from tidegate.sim.capacity import CapacityCurve
from tidegate.sim.chance import stream
from tidegate.sim.fleet import changes
from tidegate.sim.samples import GridSamples, RecordedSamples
from tidegate.sim.timeline import Timeline


@pytest.mark.parametrize(
    ("points", "begin_s", "work_s", "done_s"),
    [
        pytest.param((), 5.0, 2.0, 7.0, id="at its rate without any point"),
        pytest.param(((0, 2),), 5.0, 2.0, 6.0, id="twice as fast from the beginning"),
        pytest.param(((10, 0.5),), 9.0, 2.0, 12.0, id="halved in the middle of the work"),
        pytest.param(((10, 0.5), (11, 1)), 9.0, 2.0, 11.5, id="halved for a second"),
        pytest.param(((10, 0), (20, 1)), 9.0, 2.0, 21.0, id="stalled for ten seconds"),
        pytest.param(((10, 0),), 9.0, 2.0, math.inf, id="stalled for good"),
        pytest.param(((10, 0),), 8.0, 2.0, 10.0, id="done just before a stall"),
        pytest.param(((10, 0), (10, 1)), 9.0, 2.0, 11.0, id="of two points at one second the later counts"),
    ],
)
def test_work_takes_as_long_as_the_capacity_says(points, begin_s: float, work_s: float, done_s: float) -> None:
    assert CapacityCurve(points).done_s(begin_s, work_s) == done_s


def test_samples_on_a_grid_keep_the_phase_of_the_whole_run() -> None:
    samples = GridSamples(phase_s=0.25, interval_s=0.5)
    samples.begin(1.0)  # the samples at 0.25 and 0.75 were never taken
    assert samples.next_s == 1.25
    assert samples.take(1.25) == (1, 1.25)
    assert samples.take(2.8) == (3, 2.25)  # 1.75, 2.25, 2.75
    assert samples.next_s == 3.25
    assert samples.until(3.25) == 4
    assert samples.until(3.3) == 5


def test_recorded_samples_are_taken_once_and_end() -> None:
    samples = RecordedSamples((1.0, 2.0, 4.0))
    assert samples.take(2.5) == (2, 1.5)
    assert (samples.next_s, samples.until(2.5), samples.is_over) == (4.0, 2, False)
    assert samples.take(4.0) == (1, 4.0)
    assert (samples.next_s, samples.until(4.0), samples.is_over) == (math.inf, 3, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0:2", [(0, 1), (0, 1)], id="there from the beginning"),
        pytest.param("0:1,4:3", [(0, 1), (1, 1), (3, 1)], id="coming, spread over the ramp"),
        pytest.param("0:2,4:0", [(0, 1), (0, 1), (1, -1), (3, -1)], id="leaving, spread over the ramp"),
        pytest.param("0:0,5:0,5:2,9:2", [(5, 1), (5, 1)], id="a step"),
    ],
)
def test_devices_come_and_leave_one_by_one(text: str, expected: list[tuple[float, int]]) -> None:
    assert list(changes(Pattern.parse(text))) == expected


def test_streams_are_the_same_by_name_and_else_differ() -> None:
    draws = [stream(*key).random() for key in ((1, "a"), (1, "a"), (1, "b"), (2, "a"), (1, "a", 1))]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 4


def test_time_without_bound_never_comes_and_a_moment_is_never_late() -> None:
    timeline, called = Timeline(), []
    timeline.at(math.inf, lambda _: called.append("never"))
    chance = random.Random(3)
    times_s = [chance.uniform(0, 100) for _ in range(200)]
    for at_s in times_s:
        timeline.at(at_s, lambda _: called.append(timeline.now_s))
    timeline.run(101)
    assert called == pytest.approx(sorted(times_s), abs=1e-9)
