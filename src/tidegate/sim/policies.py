"""A strategy's policy: a registered one by its name, or a class of the user's own as ``module:Class``.

A fault of the user's own class is told as one sentence with its line, like every other mistake in what a user gives.
"""

import contextlib
import importlib
import traceback
from collections.abc import Iterator
from typing import Any

import msgspec

from tidegate.control.policy import Seen, SendRatePolicy, Verdict
from tidegate.loop.policies import registry
from tidegate.model.errors import UserError
from tidegate.model.intents import Algorithm
from tidegate.sim.scenario import Scenario, Strategy


def build(scenario: Scenario, strategy: Strategy) -> SendRatePolicy[Any]:
    """The policy, told what an operator would tell it about the devices."""
    classes = tuple(load.device_class() for load in scenario.classes)
    default_rate_per_s = 1 / scenario.told_interval_s
    if ":" not in strategy.policy:
        return registry.build(strategy.policy, strategy.options, default_rate_per_s=default_rate_per_s, classes=classes)
    kind = _find(strategy.policy)
    settings_type = getattr(kind, "settings_type", None)
    if settings_type is None:
        if strategy.options:
            raise UserError(f"Policy {strategy.policy} takes no options: give it a settings_type, or leave them out.")
        return OwnPolicy(strategy.policy, kind)
    what = f"policy {strategy.policy}"
    settings = registry.settings_for(settings_type, strategy.options, what, default_rate_per_s, classes)
    return OwnPolicy(strategy.policy, kind, settings)


def chosen(scenario: Scenario, strategy: Strategy, algorithm: Algorithm) -> SendRatePolicy[Any]:
    """What a rule lets the strategy follow: another policy, or the same one with other options."""
    name = algorithm.name or strategy.policy
    own = strategy.options if name == strategy.policy else {}
    return build(scenario, msgspec.structs.replace(strategy, policy=name, options={**own, **algorithm.options}))


class OwnPolicy:
    """A policy that somebody else wrote: what it does wrong is said by its name."""

    def __init__(self, name: str, kind: Any, *arguments: Any) -> None:
        self._name = name
        try:
            self._policy = kind(*arguments)
        except TypeError as error:
            raise UserError(
                f"Policy {name} cannot be built ({error}): a class with a settings_type takes its settings, and one "
                "without takes nothing."
            ) from error
        with self._named():
            self._state_type = self._policy.state_type
            self._initial = self._policy.initial()

    @property
    def state_type(self) -> Any:
        return self._state_type

    def initial(self) -> Any:
        return self._initial

    def step(self, state: Any, seen: Seen) -> tuple[Any, Verdict]:
        with self._named():
            after, verdict = self._policy.step(state, seen)
        if not isinstance(verdict, Verdict) or not isinstance(after, self._state_type):
            raise UserError(f"Policy {self._name}: step must return a {self._state_type.__name__} and a Verdict.")
        rates = [verdict.rate_per_device, *verdict.classes.values()]
        if any(rate is not None and not rate > 0 for rate in rates):
            raise UserError(
                f"Policy {self._name}: a rate must be more than 0, or None for the default; it said {rates}."
            )
        return after, verdict

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise UserError(
                f"Policy {self._name} failed with {type(error).__name__} ({error}) in line {last.lineno} of "
                f"{last.filename}: correct it there."
            ) from error


def _find(name: str) -> Any:
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(
            f"Policy {name}: the module {module_name!r} cannot be imported ({what}): it has to be in the "
            "current directory or installed."
        ) from None
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        raise UserError(f"Policy {name}: the module {module_name} has no class {class_name!r}: write module:Class.")
    missing = [part for part in ("state_type", "initial", "step") if not hasattr(kind, part)]
    if missing:
        raise UserError(f"Policy {name} is no send-rate policy: it lacks {', '.join(missing)}.")
    return kind
