"""The loop's time never goes back, whoever leads and whatever clocks do."""

import pytest

from tidegate.controller.clock import LoopClock


class Clocks:
    def __init__(self) -> None:
        self.monotonic_s, self.unix_s = 50.0, 1_000.0
        self.clock = LoopClock(lambda: self.monotonic_s, lambda: self.unix_s)

    def passes(self, seconds: float) -> float:
        self.monotonic_s += seconds
        self.unix_s += seconds
        return self.clock.now_s()


def test_it_begins_with_the_wall_clock_and_does_not_follow_its_steps() -> None:
    clocks = Clocks()
    assert clocks.clock.now_s() == 1_000.0
    clocks.unix_s -= 30.0
    assert clocks.passes(1.0) == 1_001.0
    clocks.unix_s += 3_600.0
    assert clocks.passes(1.0) == 1_002.0


def test_whoever_takes_over_goes_on_from_where_the_last_leader_was() -> None:
    clocks = Clocks()
    assert clocks.clock.not_before(1_030.0), "what was measured before does not go with what comes"
    assert clocks.clock.now_s() == 1_030.0
    assert not clocks.clock.not_before(1_010.0)
    assert not clocks.clock.not_before(1_030.01)
    assert clocks.passes(2.0) == pytest.approx(1_032.01)


def test_whoever_is_far_ahead_of_the_last_leader_goes_back_to_its_time() -> None:
    clocks = Clocks()
    assert not clocks.clock.set_back(-3.0)
    assert not clocks.clock.set_back(4.9), "a bus that answers late sets nobody back"
    assert clocks.clock.now_s() == 1_000.0
    assert clocks.clock.set_back(600.0)
    assert clocks.clock.now_s() == 400.0
    assert clocks.passes(2.0) == 402.0


def test_a_moment_of_the_wall_clock_is_as_long_ago_as_it_was() -> None:
    clocks = Clocks()
    clocks.clock.not_before(5_000.0)
    assert clocks.clock.from_unix(clocks.unix_s - 7.0) == 4_993.0
