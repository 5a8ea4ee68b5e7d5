"""Policies by name: each is built from plain options, knows its fleet, and refuses what it does not know."""

from typing import Any

import msgspec
import pytest

from tidegate.control.policy import ClassSeen, Seen, Verdict
from tidegate.control.scaling.autoscaler import AUTOSCALERS
from tidegate.loop.policies import registry
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError

ALARM = DeviceClass(name="alarm", topics=("alarms/#",), never_delay=True)
METER = DeviceClass(name="meter", topics=("#",), default_interval_s=0.25)


def build(name: str, options: dict[str, Any] | None = None, *, rate: float = 2.0, classes: tuple = ()) -> Any:
    return registry.build(name, options or {}, default_rate_per_s=rate, classes=classes)


def seen(at_s: float, *, classes: tuple[ClassSeen, ...] = ()) -> Seen:
    """A flood on one node: 100 devices send 200 messages a second, 50 are taken."""
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=True,
        waiting=round(150 * at_s) + 100,
        head_age_s=2.0 + 0.75 * at_s,
        arrival_per_s=200.0,
        departure_per_s=50.0,
        devices=100,
        node_rate_per_s=50.0,
        busy_share=1.0,
        classes=classes,
    )


def after(policy: Any, seconds: int, classes: tuple[ClassSeen, ...] = ()) -> Verdict:
    """The last verdict of a flood. The state goes through JSON in every round, as it does between two leaders."""
    state = policy.initial()
    for second in range(seconds):
        state, verdict = policy.step(state, seen(float(second), classes=classes))
        state = msgspec.json.decode(msgspec.json.encode(state), type=policy.state_type)
    return verdict


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_policy_is_built_without_options_and_takes_a_step(name: str) -> None:
    policy = build(name)
    if name == "oracle":
        with pytest.raises(UserError):
            after(policy, 1)
        return
    verdict = after(policy, 3)
    assert verdict.phase
    assert verdict.rule
    assert verdict.rejected


@pytest.mark.parametrize("name", [name for name in registry.NAMES if name not in ("none", "oracle")])
def test_the_default_rate_of_the_fleet_reaches_the_policy(name: str) -> None:
    """No verdict names more than it; adaptive only begins with it, and then learns what devices really want."""
    options = {"policy": "gotin", "mode": "overload-based"} if name == registry.COUPLED else {}
    held = after(build(name, options, rate=2.0), 20)
    rates = [rate for rate in (held.rate_per_device, *held.classes.values()) if rate is not None]
    assert rates
    assert max(rates) < 2.0
    slow = after(build(name, options, rate=0.01), 1 if name == "adaptive" else 20)
    assert all(rate is None or rate <= 0.01 for rate in (slow.rate_per_device, *slow.classes.values()))


@pytest.mark.parametrize("name", ["adaptive", "coupled"])
def test_classes_reach_the_policy_also_within_a_coupling(name: str) -> None:
    classes = (
        ClassSeen(name="alarm", devices=10, arrival_per_s=20.0),
        ClassSeen(name="meter", devices=90, arrival_per_s=180.0),
    )
    options = {"policy": "adaptive", "mode": "independent"} if name == registry.COUPLED else {}
    verdict = after(build(name, options, classes=(ALARM, METER)), 20, classes)
    assert verdict.classes["alarm"] is None
    held = verdict.classes["meter"]
    assert held is not None
    assert held < 2.0


def test_options_go_over_the_fleets_values() -> None:
    said = [after(build("gotin", options), 1).rule for options in ({}, {"default_rate_per_s": 0.125})]
    assert ["0.125)" in rule for rule in said] == [False, True]


def test_options_reach_the_policy() -> None:
    verdict = after(build("gotin", {"k_protect": 0.5}), 1)
    assert verdict.rate_per_device == pytest.approx(50 / 100 * 0.5)


def test_options_of_a_coupling_reach_both_its_parts() -> None:
    options = {
        "mode": "independent",
        "policy": "gotin",
        "policy_options": {"k_protect": 0.5},
        "autoscaler": "threshold",
        "autoscaler_options": {"nodes_max": 2, "upper": 50.0, "period_s": 0.0},
    }
    verdict = after(build("coupled", options), 5)
    assert verdict.rate_per_device == pytest.approx(0.25)
    assert verdict.nodes_wanted == 2
    assert after(build("coupled", {**options, "autoscaler_options": {"upper": 1e9}}), 5).nodes_wanted == 1


@pytest.mark.parametrize("autoscaler", sorted(AUTOSCALERS))
def test_every_autoscaler_can_be_coupled(autoscaler: str) -> None:
    assert after(build("coupled", {"policy": "none", "autoscaler": autoscaler}), 3).nodes_wanted is not None


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("magic", {}, "There is no policy 'magic': choose one of adaptive, "),
        ("gotin", {"k_recovery": 1.1}, "Policy gotin has no option 'k_recovery': it knows default_rate_per_s, "),
        ("none", {"rate": 1}, "Policy none has no option 'rate': it knows none."),
        ("gotin", {"k_protect": 1.5}, "Policy gotin: Expected `float` < 1.0 - at `$.k_protect`."),
        ("gotin", {"k_protect": "much"}, "Policy gotin: Expected `float`, got `str` - at `$.k_protect`."),
        ("adaptive", {"provisioning": 3}, "Policy adaptive: Expected `object`, got `int` - at `$.provisioning`."),
        ("adaptive", {"provisioning": {"nodes_wanted": 3}}, "`nodes_wanted` - at `$.provisioning`."),
        ("coupled", {"autoscalers": "one-step"}, "Policy coupled has no option 'autoscalers': it knows autoscaler, "),
        ("coupled", {"mode": "close"}, "Policy coupled: Invalid enum value 'close' - at `$.mode`."),
        ("coupled", {"policy": "magic"}, "There is no policy 'magic'"),
        ("coupled", {"policy": "coupled"}, "Policy coupled: its option policy is coupled itself"),
        ("coupled", {"autoscaler": "magic"}, "There is no autoscaler 'magic': choose one of one-step, threshold."),
        ("coupled", {"policy_options": {"k_recovery": 1}}, "Policy gotin has no option 'k_recovery'"),
        ("coupled", {"autoscaler_options": {"uper": 1}}, "Autoscaler threshold has no option 'uper': it knows "),
        ("coupled", {"autoscaler_options": {"lower": 20.0}}, "lower 20 above upper 10"),
    ],
)
def test_refusals_name_the_place_and_what_may_stand_there(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        build(name, options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_who_names_no_policy_hears_of_every_one() -> None:
    with pytest.raises(UserError) as caught:
        build("magic")
    assert [name for name in registry.NAMES if name not in str(caught.value)] == []


def test_a_coupling_leaves_the_options_as_they_were_given() -> None:
    options = {"policy": "gotin", "policy_options": {"k_protect": 0.5}}
    build("coupled", options)
    assert options == {"policy": "gotin", "policy_options": {"k_protect": 0.5}}
