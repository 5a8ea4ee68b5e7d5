"""What no sensor can see reaches the oracle, and nobody else."""

from typing import Any

import msgspec
import pytest

from tidegate.control.policy import Seen
from tidegate.loop.policies import registry
from tidegate.model.observations import Observation
from tidegate.sim import policies
from tidegate.sim.run import build_world, run_policy
from tidegate.sim.scenario import Load, Scenario, Service, Strategy
from tidegate.sim.service import ServiceModel
from tidegate.sim.timeline import Timeline
from tidegate.sim.world import World

SCENARIO = Scenario(
    name="flood",
    seconds=40,
    classes=(
        Load(name="alarm", pattern="0:2", default_interval_s=2.0, never_delay=True),
        Load(name="meter", pattern="0:2", default_interval_s=2.0, event_driven=True),
        Load(name="telemetry", pattern="0:5,10:5,12:30"),
    ),
    service=Service(rate_per_s=10, noise=0.1, nodes_at_start=2, nodes_max=4, start_s=2),
)
# A coupled policy is tried with each policy inside.
EVERY = [Strategy(policy=name) for name in registry.POLICIES] + [
    Strategy(policy="coupled", name=f"coupled {name}", options={"policy": name, "mode": "independent"})
    for name in registry.POLICIES
]
OTHERS = [strategy for strategy in EVERY if "oracle" not in strategy.title]
ORACLES = [strategy for strategy in EVERY if "oracle" in strategy.title]
NONE = Strategy(policy="none")
WORLD_TYPES = (World, ServiceModel, Timeline)
PLAIN_TYPES = (bool, int, float, str, type(None))


def refuse(_: World) -> None:
    raise AssertionError("a policy asked for the truth")


def test_every_registered_policy_is_tried() -> None:
    assert {strategy.policy for strategy in EVERY} == set(registry.NAMES)
    assert len(ORACLES) == 2


@pytest.mark.parametrize("strategy", OTHERS, ids=lambda strategy: strategy.title)
def test_no_policy_asks_for_the_truth_or_could(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "truth", refuse)
    policy = policies.build(SCENARIO, strategy)
    views: list[Seen] = []
    step = policy.step
    monkeypatch.setattr(policy, "step", lambda state, seen: views.append(seen) or step(state, seen))
    world = build_world(SCENARIO, strategy, policy, seed=1)
    world.run(SCENARIO.seconds)
    assert len(views) > 20
    for seen in views:
        assert_plain(seen)
    assert not any(isinstance(found, WORLD_TYPES) for found in reachable(policy))


@pytest.mark.parametrize("strategy", ORACLES, ids=lambda strategy: strategy.title)
def test_the_oracle_is_told_and_asks(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policies.build(SCENARIO, strategy)
    assert run_policy(SCENARIO, strategy, policy, seed=1).sent > 0
    assert any(isinstance(found, World) for found in reachable(policy))
    monkeypatch.setattr(World, "truth", refuse)
    with pytest.raises(AssertionError, match="asked for the truth"):
        run_policy(SCENARIO, strategy, policies.build(SCENARIO, strategy), seed=1)


def test_what_sensors_deliver_is_plain_and_frozen() -> None:
    world = build_world(SCENARIO, NONE, policies.build(SCENARIO, NONE), seed=1)
    observations: list[Observation] = []
    world.controller.hear = lambda observation, _: observations.append(observation)  # type: ignore[method-assign]
    world.run(SCENARIO.seconds)
    assert len(observations) == 39
    for observation in observations:
        assert_plain(observation)


def test_the_truth_is_the_true_capacity() -> None:
    """Two nodes of 10 messages a second: with alarms that cost 5 as often as others that cost 1, 20 / 3."""
    loads = (Load(name="alarm", pattern="0:4", cost=5.0), Load(name="telemetry", pattern="0:4"))
    mixed = msgspec.structs.replace(SCENARIO, classes=loads)
    world = build_world(mixed, NONE, policies.build(mixed, NONE), seed=1)
    world.run(40)
    truth = world.truth()
    assert (truth.capacity_per_s, truth.devices, truth.nodes_working) == (pytest.approx(20 / 3), 8, 2)
    assert truth.waiting == world.service.waiting > 0


def assert_plain(value: Any) -> None:
    """Values that sensors can deliver over a wire: numbers, texts, and frozen structs of such."""
    if isinstance(value, msgspec.Struct):
        assert type(value).__struct_config__.frozen, type(value)
        for name in value.__struct_fields__:
            assert_plain(getattr(value, name))
    elif isinstance(value, tuple):
        for one in value:
            assert_plain(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            assert type(key) is str
            assert_plain(one)
    else:
        assert type(value) in PLAIN_TYPES, type(value)


def reachable(root: Any) -> list[Any]:
    """Every object of ours that attributes, containers and bound methods lead to."""
    found, ahead, known = [], [root], set()
    while ahead:
        one = ahead.pop()
        if id(one) in known or isinstance(one, (*PLAIN_TYPES, type)):
            continue
        known.add(id(one))
        found.append(one)
        if isinstance(one, dict):
            ahead += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            ahead += one
        else:
            ahead += [getattr(one, "__self__", None), *vars(one).values()] if hasattr(one, "__dict__") else []
            ahead += [getattr(one, "__self__", None), *(getattr(one, "__closure__", None) or ())]
            ahead += [getattr(one, name, None) for name in getattr(type(one), "__struct_fields__", ())]
            ahead += [getattr(one, name, None) for name in getattr(type(one), "__slots__", ())]
            if type(one).__name__ == "cell":
                ahead.append(one.cell_contents)
    return found
