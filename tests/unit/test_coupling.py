"""The published couplings: who acts when, and who is off."""

import msgspec
import pytest

from tidegate.control.policy import Seen, SendRatePolicy
from tidegate.control.scaling.autoscaler import Threshold, ThresholdSettings
from tidegate.control.scaling.coupling import Coupled, CoupledSettings, CoupledState, CouplingMode
from tidegate.control.send_rate.credits import Credits, CreditsSettings
from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.control.send_rate.none import NoProtection, NoSettings

GOTIN = Gotin(GotinSettings(default_rate_per_s=2.0, k_protect=0.9, k_recover=3.0, iteration_s=1.0))
CREDITS = Credits(CreditsSettings(default_rate_per_s=2.0, target_delay_s=0.5))


def coupled(mode: CouplingMode, policy: SendRatePolicy = GOTIN, nodes_max: int = 3) -> Coupled:
    autoscaler = Threshold(ThresholdSettings(upper=10, lower=0, period_s=0.0, nodes_max=nodes_max))
    return Coupled(CoupledSettings(mode=mode), policy, autoscaler)


def seen(at_s: float, *, length: int, nodes_working: int) -> Seen:
    """100 devices; each node takes 20 msg/s; more than one waiting message is an overload."""
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=length > 1,
        waiting=length + nodes_working,
        head_age_s=2.0 if length > 1 else 0.0,
        arrival_per_s=200.0,
        departure_per_s=20.0 * nodes_working,
        devices=100,
        nodes_working=nodes_working,
        node_rate_per_s=20.0,
    )


def run(policy: Coupled, lengths: list[int]) -> list[tuple[str, int | None]]:
    """Phase and wanted nodes of each round; nodes come at once."""
    state, nodes_working, rounds = policy.initial(), 1, []
    for at_s, length in enumerate(lengths):
        state, verdict = policy.step(state, seen(float(at_s), length=length, nodes_working=nodes_working))
        nodes_working = verdict.nodes_wanted or nodes_working
        rounds.append((verdict.phase, verdict.nodes_wanted))
    return rounds


LENGTHS = [0, 50, 50, 50, 0, 0, 0, 0]


def test_independent_both_act_in_every_round() -> None:
    # The rate recovers from 0.54 by 3 per round: 0.54, 1.62, default. Meanwhile the empty queue costs two nodes.
    assert run(coupled("independent"), LENGTHS) == [
        ("idle", 1),
        ("protect", 2),
        ("protect", 3),
        ("protect", 3),
        ("recover", 2),
        ("recover", 1),
        ("idle", 1),
        ("idle", 1),
    ]


def test_overload_based_the_autoscaler_is_off_while_devices_are_held() -> None:
    # R is 20 msg/s, the rate 0.18: 0.18, 0.54, 1.62, default. The one node stays alone for the whole episode.
    assert run(coupled("overload-based"), LENGTHS) == [
        ("idle", 1),
        ("protect", 1),
        ("protect", 1),
        ("protect", 1),
        ("recover", 1),
        ("recover", 1),
        ("recover", 1),
        ("idle", 1),
    ]


def test_state_aware_the_autoscaler_comes_first() -> None:
    # With the third node it is saturated; the three stay until the default rate is reached, and go one by one.
    assert run(coupled("state-aware"), LENGTHS) == [
        ("idle", 1),
        ("idle", 2),
        ("protect", 3),
        ("protect", 3),
        ("recover", 3),
        ("recover", 3),
        ("idle", 2),
        ("idle", 1),
    ]


def test_state_aware_a_recovery_that_meets_an_overload_asks_nobody() -> None:
    policy = coupled("state-aware")
    state, _ = policy.step(policy.initial(), seen(0.0, length=50, nodes_working=3))
    state, _ = policy.step(state, seen(1.0, length=0, nodes_working=3))
    _, verdict = policy.step(state, seen(2.0, length=2, nodes_working=3))
    assert (verdict.phase, verdict.nodes_wanted) == ("protect", 3)  # a queue of 2 does not saturate the autoscaler


def test_a_policy_that_needs_no_overload_is_kept_back_too() -> None:
    policy = coupled("state-aware", CREDITS, nodes_max=2)
    state, verdict = policy.step(policy.initial(), seen(0.0, length=5, nodes_working=1))
    assert (verdict.phase, verdict.rate_per_device) == ("idle", None)
    assert "more nodes can still help" in verdict.rejected
    assert state.policy == msgspec.to_builtins(CREDITS.initial())  # it has not moved
    _, verdict = policy.step(state, seen(1.0, length=50, nodes_working=1))
    assert (verdict.phase, verdict.nodes_wanted) == ("protect", 2)
    assert verdict.rate_per_device is not None


def test_autoscaling_alone() -> None:
    rounds = run(coupled("independent", NoProtection(NoSettings())), [50, 50, 50, 0])
    assert [wanted for _, wanted in rounds] == [2, 3, 3, 2]


def test_a_verdict_says_what_both_did() -> None:
    policy = coupled("overload-based")
    _, verdict = policy.step(policy.initial(), seen(0.0, length=50, nodes_working=1))
    assert verdict.rule.startswith("protect: min(R / N, S_default)")
    assert verdict.rule.endswith("; autoscaler: off while devices are held")


@pytest.mark.parametrize("mode", ["independent", "overload-based", "state-aware"])
def test_a_state_of_something_else_begins_anew(mode: CouplingMode) -> None:
    policy = coupled(mode)
    strange = CoupledState(policy={"phase": "asleep"}, scaling={"wanted": "many"})
    now = seen(0.0, length=50, nodes_working=1)
    assert policy.step(strange, now)[1] == policy.step(policy.initial(), now)[1]
