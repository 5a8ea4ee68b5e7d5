"""The published policy, step by step, against values computed by hand."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.gotin import Gotin, GotinSettings, GotinState
from tidegate.control.send_rate.none import NoProtection
from tidegate.model.advice import RATE_PER_S_MIN

POLICY = Gotin(GotinSettings(default_rate_per_s=2.0, k_protect=0.9, k_recover=1.5, iteration_s=1.0))


def seen(at_s: float, *, overload: bool, departure: float = 500.0, devices: int = 1_000) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=overload,
        waiting=1_000 if overload else 10,
        head_age_s=2.0 if overload else 0.1,
        arrival_per_s=1_000.0,
        departure_per_s=departure,
        devices=devices,
    )


IDLE = GotinState()
PROTECT = GotinState(phase="protect", capacity_per_s=500.0, rate_per_device=0.45, stepped_at_s=10.0)
RECOVER = GotinState(phase="recover", capacity_per_s=500.0, rate_per_device=0.6, stepped_at_s=10.0)


@pytest.mark.parametrize(
    ("before", "now", "phase", "rate", "capacity"),
    [
        pytest.param(IDLE, seen(10, overload=False), "idle", None, None, id="idle stays idle and claims no capacity"),
        # S' = 500/1000 = 0.5, cap min(0.5, 2) = 0.5, times 0.9
        pytest.param(IDLE, seen(10, overload=True), "protect", 0.45, 500.0, id="an overload protects"),
        # S' = 500/100 = 5, capped to 2, times 0.9
        pytest.param(IDLE, seen(10, overload=True, devices=100), "protect", 1.8, 500.0, id="the default caps S'"),
        pytest.param(
            IDLE, seen(10, overload=True, devices=0), "protect", 1.8, 500.0, id="without devices the cap decides"
        ),
        pytest.param(IDLE, seen(10, overload=True, departure=0), "protect", 1.8, None, id="without R the cap decides"),
        pytest.param(
            PROTECT,
            seen(10.5, overload=True, departure=300),
            "protect",
            0.45,
            300.0,
            id="within T the rate stays, R moves",
        ),
        # 300/1000 * 0.9
        pytest.param(
            PROTECT, seen(11, overload=True, departure=300), "protect", 0.27, 300.0, id="R follows a slower node"
        ),
        # 800/1000 * 0.9
        pytest.param(
            PROTECT, seen(11, overload=True, departure=800), "protect", 0.72, 800.0, id="R follows a faster node"
        ),
        pytest.param(
            PROTECT, seen(11, overload=True, departure=0), "protect", 0.45, 500.0, id="a stall leaves R as it was"
        ),
        pytest.param(
            PROTECT, seen(11, overload=True, devices=10**9), "protect", RATE_PER_S_MIN, 500.0, id="a rate is never zero"
        ),
        pytest.param(
            PROTECT, seen(11, overload=False), "recover", 0.45, 500.0, id="recovery starts at the last S'_protect"
        ),
        pytest.param(
            PROTECT, seen(11, overload=False, departure=400), "recover", 0.45, 500.0, id="calm never lowers R"
        ),
        pytest.param(
            PROTECT, seen(11, overload=False, departure=600), "recover", 0.45, 600.0, id="a higher rate raises R"
        ),
        pytest.param(RECOVER, seen(10.9, overload=False), "recover", 0.6, 500.0, id="no step before T"),
        pytest.param(RECOVER, seen(11, overload=False), "recover", 0.9, 500.0, id="one factor per T"),
        pytest.param(RECOVER, seen(15, overload=False), "recover", 0.9, 500.0, id="one factor after a gap, too"),
        pytest.param(
            RECOVER, seen(10.2, overload=True, departure=400), "protect", 0.36, 400.0, id="recovery meets an overload"
        ),
        pytest.param(
            GotinState(phase="recover", capacity_per_s=500.0, rate_per_device=1.4, stepped_at_s=10.0),
            seen(11, overload=False),
            "idle",
            None,
            500.0,
            id="the default is reached",
        ),
    ],
)
def test_one_step(before: GotinState, now: Seen, phase: str, rate: float | None, capacity: float | None) -> None:
    state, verdict = POLICY.step(before, now)
    assert (state.phase, state.rate_per_device) == (phase, pytest.approx(rate) if rate else rate)
    assert (verdict.phase, verdict.rate_per_device) == (state.phase, state.rate_per_device)
    assert state.capacity_per_s == verdict.capacity_per_s == capacity
    assert verdict.rule
    assert verdict.rejected


def test_a_whole_episode() -> None:
    """Overloaded for two seconds, then a recovery of 0.45 * 1.5^n up to the default of 2."""
    state, rates = POLICY.initial(), []
    for at_s in range(10):
        state, verdict = POLICY.step(state, seen(float(at_s), overload=at_s in (1, 2)))
        rates.append(verdict.rate_per_device)
    expected = [None, 0.45, 0.45, 0.45, 0.675, 1.0125, 1.51875, None, None, None]
    assert rates == [rate if rate is None else pytest.approx(rate) for rate in expected]


def test_a_slightly_late_round_keeps_the_beat() -> None:
    state = RECOVER
    for at_s in (11.1, 12.0, 13.05):
        state, _ = POLICY.step(state, seen(at_s, overload=False, devices=100))
    assert state.rate_per_device is None  # 0.6 * 1.5^3 = 2.03: three steps were made


def test_the_rule_shows_its_values() -> None:
    _, verdict = POLICY.step(IDLE, seen(10, overload=True))
    assert "min(500 msg/s / 1,000, 2) * 0.9 = 0.45 msg/s per device" in verdict.rule


def test_no_protection_holds_nobody() -> None:
    policy = NoProtection()
    _, verdict = policy.step(policy.initial(), seen(1, overload=True))
    assert verdict.rate_per_device is None
