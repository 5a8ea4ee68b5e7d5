"""Rates from counters that grow in steps, fall back, and are sampled unevenly."""

import math

import pytest

from tidegate.loop.monitors import measured, names
from tidegate.loop.window import Window
from tidegate.model.observations import Observation


def observed(at_s: float, arrived: int, committed: int, committed_at_s: float = 0.0) -> Observation:
    return Observation(
        at_s=at_s, arrived=arrived, committed=committed, head_age_s=0.5, devices=3, committed_at_s=committed_at_s
    )


def fed(*points: tuple[float, int, int]) -> dict[str, float]:
    window = Window(3.0)
    for point in points:
        window.add(observed(*point))
    return measured(observed(*points[-1]), window, interval_s=1.5)["chain"]


def test_nothing_seen_is_nothing_claimed() -> None:
    window = Window(3.0)
    assert (window.arrival_per_s(), window.departure_per_s(), window.is_full) == (0.0, 0.0, False)


def test_every_property_has_its_value() -> None:
    found = fed((0, 0, 0), (1, 200, 100), (2, 400, 200))
    expected = {"head_age_s": 0.5, "waiting": 200, "arrival_per_s": 200, "departure_per_s": 100, "devices": 3}
    expected["device_rate_per_s"] = 200 / 3
    nodes = {"nodes_working": 0, "nodes_starting": 0, "nodes_at_limit": 0, "busy_share": 0}
    assert found == {**expected, **nodes, "interval_s": 1.5, "held": 0}
    assert set(names()) - set(found) == {"node_rate_per_s"}, "no node was seen at its limit"


def rates(batch_s: float, period_s: float, *, said: bool) -> list[float]:
    """What is measured of 500 rows a second, a batch at a time, once a window is full."""
    window, found = Window(3.0), []
    for tick in range(round(30 / period_s)):
        at_s = tick * period_s
        batches = math.floor(at_s / batch_s + 1e-9)
        committed_at_s = batches * batch_s if said else 0.0
        window.add(observed(at_s, 10**6, round(batches * batch_s * 500), committed_at_s))
        if at_s > 6:
            found.append(window.departure_per_s())
    return found


@pytest.mark.parametrize("batch_s", [0.3, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("period_s", [0.1, 0.5])
def test_a_rate_does_not_depend_on_where_a_batch_ends(batch_s: float, period_s: float) -> None:
    """The nodes say when they committed, so that samples between two commits do no harm."""
    assert rates(batch_s, period_s, said=True) == pytest.approx(
        [500] * len(rates(batch_s, period_s, said=True)), rel=0.2
    )


@pytest.mark.parametrize("batch_s", [0.3, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("period_s", [0.1, 0.5])
def test_where_nodes_say_nothing_a_rate_is_wrong_by_what_two_samples_miss(batch_s: float, period_s: float) -> None:
    found = rates(batch_s, period_s, said=False)
    error = 500 * period_s / 1.0
    assert min(found) >= 500 - error
    assert max(found) <= 500 + error
    assert sum(found) / len(found) == pytest.approx(500, rel=0.1)


def test_in_a_flood_the_newest_steps_count() -> None:
    """Ten rows a step in calm, then full ones: after a third of the window the calm is forgotten."""
    calm = [(at_s * 0.5, at_s * 10, at_s * 10) for at_s in range(13)]
    flood = [(6.5, 2_000, 370), (7.0, 3_000, 620), (7.5, 4_000, 870)]
    assert fed(*calm, *flood)["departure_per_s"] == pytest.approx(500)


def test_irregular_samples_are_weighed_by_time() -> None:
    found = fed((0, 0, 0), (0.1, 10, 10), (1.7, 170, 170), (1.8, 180, 180), (2.9, 290, 290))
    assert found["arrival_per_s"] == pytest.approx(100)
    assert found["departure_per_s"] == pytest.approx(100)


def test_a_stall_shows_a_falling_rate_and_then_none() -> None:
    window, found = Window(3.0), []
    for tick in range(20):
        window.add(observed(tick * 0.5, 10_000, min(tick, 8) * 250))
        found.append(window.departure_per_s())
    assert found[8] == pytest.approx(500)
    assert found[9:15] == sorted(found[9:15], reverse=True)
    assert 0 < found[14] < 300
    assert found[15:] == [0.0] * 5


def test_a_long_pause_is_no_slow_step() -> None:
    """Nothing to do for a minute, then a full second of work: the minute does not count as work."""
    points = [(float(at_s), 100, 100) for at_s in range(60)]
    found = fed(*points, (59.5, 900, 100), (60.0, 900, 600), (60.5, 1_500, 1_100))
    assert found["departure_per_s"] >= 1_000 / 3.5


def test_a_stall_that_ends_is_no_slow_step() -> None:
    """Twelve seconds without a commit, then 300 rows every second: the twelve seconds say nothing about a rate."""
    stalled = [(at_s * 0.5, 5_000 + at_s * 200, 0) for at_s in range(1, 24)]
    after = [(12.0, 9_800, 300), (12.5, 10_000, 300), (13.0, 10_200, 600), (13.5, 10_400, 600), (14.0, 10_600, 900)]
    found = [fed((0, 0, 0), *stalled, *after[:count])["departure_per_s"] for count in range(1, 6)]
    assert found == [0.0, 0.0, 300.0, 300.0, 300.0]


def test_a_sample_that_is_not_newer_changes_nothing() -> None:
    window = Window(3.0)
    assert window.add(observed(1, 0, 0))
    assert window.add(observed(2, 100, 100))
    before = (window.arrival_per_s(), window.departure_per_s())
    assert not window.add(observed(2, 100, 100))
    assert not window.add(observed(1.5, 500, 0))
    assert (window.arrival_per_s(), window.departure_per_s()) == before


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(((3, 50, 40), (4, 150, 140)), id="both counters begin anew"),
        pytest.param(((3, 2_000, 40), (4, 2_100, 140)), id="only the committed one does"),
        pytest.param(((-90, 2_000, 2_000), (-89, 2_100, 2_100)), id="the clock is set back"),
    ],
)
def test_after_a_reset_rates_begin_anew(after: tuple[tuple[float, int, int], ...]) -> None:
    found = fed((0, 0, 0), (1, 1_000, 1_000), (2, 2_000, 2_000), *after)
    assert found["arrival_per_s"] == pytest.approx(100)
    assert 0 <= found["departure_per_s"] <= 100
