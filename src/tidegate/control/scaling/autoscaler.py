"""How many processing nodes shall run: one interface, the published threshold rule, and one that needs a single step.

*threshold*, as published beside the send-rate control of Gotin et al. (ICPE 2019): the metric is the queue length, that
is, what waits beyond the messages in service::

    length > upper   one node more             upper 10, lower 0, at least 1 node
    length <= lower  one node less

*one-step*, after DS2 (Kalavri et al., OSDI 2018): the number follows from true rates instead of being searched for::

    wanted = ceil(demand / (rate of one node * target utilisation))

The rate of one node is that of its work at the limit. Demand is what devices would send if nobody held them, where
the caller knows it, else the arrival rate.

Clamps, each with its reason:

* ``nodes_min`` and ``nodes_max``: what the operator pays for. Who wants more than the maximum is *saturated*;
  as published that is said of decisions, so also while the last node is still starting.
* threshold: one decision per ``period_s``; unless told otherwise none while nodes start, and none on a view that is
  older than the last decision: each of them would act again on a queue that has not felt the last decision yet.
* one-step: up at once, because data ages; down only after the need was lower for ``down_after_s``, and only to the
  highest need in that time, because a start costs more than an idle moment.
* one-step: an idle node proves nothing, so in a lull the last rate counts; before the first one it stays.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, Generic, Protocol, TypeVar

import msgspec

from tidegate.control.policy import Seen
from tidegate.model.errors import UserError

# Above a whole number by less than this is rounding, not demand.
_ROUNDING = 1e-9

_NodeCount = Annotated[int, msgspec.Meta(ge=1)]
ScalingState = TypeVar("ScalingState", bound=msgspec.Struct)


class ScalingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    nodes_wanted: int
    saturated: bool  # more would be wanted than may run
    rule: str  # what was applied, with its numbers


class Autoscaler(Protocol, Generic[ScalingState]):
    """One step per round; the same state and the same view give the same verdict."""

    @property
    def state_type(self) -> type[ScalingState]: ...

    def initial(self) -> ScalingState: ...

    def step(
        self, state: ScalingState, seen: Seen, demand_per_s: float | None = None
    ) -> tuple[ScalingState, ScalingVerdict]: ...


class ThresholdSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The published thresholds; the publication names no period."""

    upper: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    lower: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    period_s: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    awaits_start: bool = True  # no decision while nodes start
    nodes_min: _NodeCount = 1
    nodes_max: _NodeCount = 4

    def __post_init__(self) -> None:
        _check_bounds("threshold", self.nodes_min, self.nodes_max)
        if self.lower > self.upper:
            raise UserError(
                f"The autoscaler threshold has lower {self.lower:g} above upper {self.upper:g}: "
                "it would start and stop a node at once; lower it."
            )


class ThresholdState(msgspec.Struct, frozen=True, kw_only=True):
    wanted: int | None = None  # None before the first step
    decided_at_s: float | None = None  # when the number changed last


class Threshold:
    def __init__(self, settings: ThresholdSettings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[ThresholdState]:
        return ThresholdState

    def initial(self) -> ThresholdState:
        return ThresholdState()

    def step(
        self,
        state: ThresholdState,
        seen: Seen,
        demand_per_s: float | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[ThresholdState, ScalingVerdict]:
        settings = self._settings
        length = max(0, seen.waiting - seen.nodes_working)
        before = _running(state.wanted, seen, settings.nodes_min, settings.nodes_max)
        wanted, rule = before, f"autoscaler: queue length {length:,} keeps {before}"
        if self._waits(state, seen):
            rule = f"autoscaler: {before} stay until the last decision shows"
        elif length > settings.upper and before < settings.nodes_max:
            wanted, rule = before + 1, f"autoscaler: queue length {length:,} > {settings.upper:g}, one more"
        elif length <= settings.lower and before > settings.nodes_min:
            wanted, rule = before - 1, f"autoscaler: queue length {length:,} <= {settings.lower:g}, one less"
        saturated = wanted >= settings.nodes_max and length > settings.upper
        if saturated:
            rule = f"autoscaler: queue length {length:,} > {settings.upper:g}, and all {wanted} nodes run or start"
        decided_at_s = state.decided_at_s if wanted == before else seen.at_s
        after = ThresholdState(wanted=wanted, decided_at_s=decided_at_s)
        return after, ScalingVerdict(nodes_wanted=wanted, saturated=saturated, rule=rule)

    def _waits(self, state: ThresholdState, seen: Seen) -> bool:
        if self._settings.awaits_start and seen.nodes_starting > 0:
            return True
        if state.decided_at_s is None:
            return False
        not_seen_yet = self._settings.awaits_start and seen.measured_at_s <= state.decided_at_s
        return not_seen_yet or seen.at_s - state.decided_at_s < self._settings.period_s


class OneStepSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target_utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    down_after_s: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    nodes_min: _NodeCount = 1
    nodes_max: _NodeCount = 4

    def __post_init__(self) -> None:
        _check_bounds("one-step", self.nodes_min, self.nodes_max)


class OneStepState(msgspec.Struct, frozen=True, kw_only=True):
    wanted: int | None = None  # None before the first step
    lower_since_s: float | None = None  # since when the need is lower than that
    highest: int = 0  # the highest need since then
    node_rate_per_s: float | None = None  # seen last


class OneStep:
    def __init__(self, settings: OneStepSettings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[OneStepState]:
        return OneStepState

    def initial(self) -> OneStepState:
        return OneStepState()

    def step(
        self, state: OneStepState, seen: Seen, demand_per_s: float | None = None
    ) -> tuple[OneStepState, ScalingVerdict]:
        settings = self._settings
        before = _running(state.wanted, seen, settings.nodes_min, settings.nodes_max)
        rate = seen.node_rate_per_s or state.node_rate_per_s
        if rate is None:
            rule = f"autoscaler: what one node can do is not known, {before} stay"
            return OneStepState(wanted=before), ScalingVerdict(nodes_wanted=before, saturated=False, rule=rule)
        demand = seen.arrival_per_s if demand_per_s is None else demand_per_s
        unbounded = math.ceil(demand / (rate * settings.target_utilisation) - _ROUNDING)
        need = min(max(unbounded, settings.nodes_min), settings.nodes_max)
        wanted, lower_since_s, highest = self._follow(state, before, need, seen.at_s)
        rule = (
            f"autoscaler: {demand:,.1f} msg/s / ({rate:,.1f} msg/s * {settings.target_utilisation:g}) "
            f"needs {unbounded:,}, {wanted} shall run"
        )
        after = OneStepState(wanted=wanted, lower_since_s=lower_since_s, highest=highest, node_rate_per_s=rate)
        return after, ScalingVerdict(nodes_wanted=wanted, saturated=unbounded > settings.nodes_max, rule=rule)

    def _follow(self, state: OneStepState, before: int, need: int, at_s: float) -> tuple[int, float | None, int]:
        """Up at once, down late: to the highest need of the time in which it was lower."""
        if need >= before:
            return need, None, 0
        since_s = at_s if state.lower_since_s is None else state.lower_since_s
        highest = max(need, state.highest)
        if at_s - since_s >= self._settings.down_after_s:
            return highest, None, 0
        return before, since_s, highest


AUTOSCALERS: dict[str, tuple[type[msgspec.Struct], Callable[[Any], Autoscaler[Any]]]] = {
    "threshold": (ThresholdSettings, Threshold),
    "one-step": (OneStepSettings, OneStep),
}


def _running(wanted: int | None, seen: Seen, least: int, most: int) -> int:
    """What was wanted last, else what runs and starts, within the bounds."""
    running = seen.nodes_working + seen.nodes_starting if wanted is None else wanted
    return min(max(running, least), most)


def _check_bounds(name: str, least: int, most: int) -> None:
    if least > most:
        raise UserError(
            f"The autoscaler {name} has nodes_min {least} above nodes_max {most}: lower the one or raise the other."
        )
