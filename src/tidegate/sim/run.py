"""One strategy in one scenario: build the world, run it, and say what came out."""

from collections.abc import Callable
from typing import Any

from tidegate.control.policy import SendRatePolicy
from tidegate.control.scaling.coupling import Coupled
from tidegate.control.send_rate.oracle import Oracle
from tidegate.loop.events import OVERLOAD, overload
from tidegate.loop.machine import ControlLoop
from tidegate.loop.policies.nodes import NodeCount
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.promises import Promises
from tidegate.model.errors import UserError
from tidegate.model.intents import Algorithm
from tidegate.sim import policies, recording
from tidegate.sim.measuring import Measuring
from tidegate.sim.result import Result
from tidegate.sim.scenario import Scenario, Strategy
from tidegate.sim.world import World

SERIES_STEP_S = 1.0


def simulate(
    scenario: Scenario, strategy: Strategy, seed: int, progress: Callable[[float], None] | None = None
) -> Result:
    """Run a strategy. The same scenario, strategy and seed give the same result; ``progress`` hears the share done."""
    return run_policy(scenario, strategy, policies.build(scenario, strategy), seed, progress)


def check(scenario: Scenario, strategy: Strategy) -> None:
    """Say what is wrong with a strategy, its policy or its recording, without running anything."""
    build_world(scenario, strategy, policies.build(scenario, strategy), seed=0)


def run_policy(
    scenario: Scenario,
    strategy: Strategy,
    policy: SendRatePolicy[Any],
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """The same with a policy that is built already."""
    world = build_world(scenario, strategy, policy, seed)
    measuring = Measuring(world)
    at_s = 0.0
    while at_s < scenario.seconds:
        at_s = min(at_s + SERIES_STEP_S, scenario.seconds)
        world.run(at_s)
        measuring.step()
        if progress is not None:
            progress(at_s / scenario.seconds)
    world.end()
    return measuring.result(strategy, seed)


def build_world(scenario: Scenario, strategy: Strategy, policy: SendRatePolicy[Any], seed: int) -> World:
    """A world at second 0. The policy acts in it as soon as it runs."""
    names = [load.name for load in scenario.classes]
    world = World(
        scenario,
        _loop(scenario, strategy, policy),
        seed,
        nodes_at_start=_nodes_at_start(scenario, strategy),
        recorded=None if scenario.replay is None else recording.load(scenario.replay, names),
    )
    _tell_truth(policy, world)
    return world


def _tell_truth(policy: SendRatePolicy[Any], world: World) -> None:
    """The oracle may ask the world; nobody else is given anything but observations."""
    inner = policy.policy if type(policy) is Coupled else policy
    if type(inner) is Oracle:
        inner.truth = world.truth


def _loop(scenario: Scenario, strategy: Strategy, policy: SendRatePolicy[Any]) -> ControlLoop:
    event = overload(strategy.overload, strategy.overload_for_s, f"Strategy {strategy.title}: overload")

    def chosen(_: str, algorithm: Algorithm) -> SendRate[Any]:
        return SendRate(policies.chosen(scenario, strategy, algorithm), scenario.advice_lifetime_s)

    for rule in strategy.rules.rules:
        for step in rule.plan:
            if step.algorithm is not None:
                policies.chosen(scenario, strategy, step.algorithm)  # a mistake is told before anything runs
    return ControlLoop(
        [SendRate(policy, scenario.advice_lifetime_s), NodeCount()],
        {OVERLOAD: event},
        window_s=scenario.window_s,
        rules=strategy.rules,
        choose=chosen,
        promises=Promises(
            tuple(load.device_class() for load in scenario.classes),
            1.0 / scenario.told_interval_s,
            scenario.advice_half_life_s,
        ),
    )


def _nodes_at_start(scenario: Scenario, strategy: Strategy) -> int:
    """How many nodes there are to begin with."""
    service = scenario.service
    if strategy.nodes_at_start is None:
        return service.nodes_at_start
    if not service.nodes_min <= strategy.nodes_at_start <= service.nodes_max:
        raise UserError(
            f"Strategy {strategy.title} starts with {strategy.nodes_at_start} nodes, and the scenario allows "
            f"{service.nodes_min} to {service.nodes_max}: choose a number between them."
        )
    return strategy.nodes_at_start
