"""A send-rate policy and an autoscaler as one policy, coupled as published by Gotin et al. (ICPE 2019).

The two are after the same queue. Held devices shorten it, so an autoscaler that watches it takes away nodes that are
needed; more nodes shorten it too, so devices are held although capacity was on its way. Modes::

    independent      both act in every round, and neither knows of the other
    overload-based   an overload is enough to hold devices; the autoscaler is off while they are held
    state-aware      the same, but devices that are not held yet may be held only once the autoscaler is saturated

Regimes. *nobody is held*: the autoscaler decides. *held* (protect and recover): the autoscaler is off, the number of
nodes stays what it was wanted to be last.

Where the publication leaves a choice:

* It speaks of phases of its own policy. Here devices are held while the policy's verdict slows anybody, so that any
  policy can be coupled.
* In state-aware mode an unsaturated autoscaler hides the overload from the policy. A policy that would hold devices
  without one is not let: its step is taken back, so it has not moved when the autoscaler is saturated at last.
* Autoscaling alone is ``independent`` with the policy ``none``.

What it does not solve: in overload-based and state-aware mode a number of nodes that has become too small during an
episode stays too small until the rate has recovered, and one that is too large stays paid for.
"""

from typing import Any, Literal

import msgspec

from tidegate.control.policy import PolicyState, Seen, SendRatePolicy, Verdict
from tidegate.control.scaling.autoscaler import Autoscaler

CouplingMode = Literal["independent", "overload-based", "state-aware"]


class CoupledSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: CouplingMode = "state-aware"


class CoupledState(msgspec.Struct, frozen=True, kw_only=True):
    """Both states as plain values, and what they have agreed on."""

    policy: dict[str, Any] = {}
    scaling: dict[str, Any] = {}
    held: bool = False  # whether the last verdict slowed anybody
    nodes_wanted: int | None = None  # by the last verdict


class Coupled:
    """``policy`` is the one that is coupled: who has to give it something finds it here."""

    def __init__(self, settings: CoupledSettings, policy: SendRatePolicy[Any], autoscaler: Autoscaler[Any]) -> None:
        self._mode = settings.mode
        self.policy = policy
        self._autoscaler = autoscaler

    @property
    def state_type(self) -> type[CoupledState]:
        return CoupledState

    def initial(self) -> CoupledState:
        return CoupledState(
            policy=msgspec.to_builtins(self.policy.initial()), scaling=msgspec.to_builtins(self._autoscaler.initial())
        )

    def step(self, state: CoupledState, seen: Seen) -> tuple[CoupledState, Verdict]:
        if self._mode == "state-aware" and not state.held:
            return self._state_aware(state, seen)
        policy, verdict = self._protect(state, seen)
        if holds(verdict) and self._mode != "independent":
            return self._result(state, policy, verdict, "autoscaler: off while devices are held")
        state, _, scaling_rule = self._scale(state, seen)
        return self._result(state, policy, verdict, scaling_rule)

    def _state_aware(self, state: CoupledState, seen: Seen) -> tuple[CoupledState, Verdict]:
        """Nobody is held: the autoscaler first, and the policy only as far as that is saturated."""
        state, saturated, scaling_rule = self._scale(state, seen)
        if not saturated:
            seen = msgspec.structs.replace(seen, overload=False)
        policy, verdict = self._protect(state, seen)
        if holds(verdict) and not saturated:
            policy, verdict = state.policy, _released(verdict)
        return self._result(state, policy, verdict, scaling_rule)

    def _protect(self, state: CoupledState, seen: Seen) -> tuple[dict[str, Any], Verdict]:
        after, verdict = self.policy.step(_restored(state.policy, self.policy), seen)
        return msgspec.to_builtins(after), verdict

    def _scale(self, state: CoupledState, seen: Seen) -> tuple[CoupledState, bool, str]:
        after, verdict = self._autoscaler.step(_restored(state.scaling, self._autoscaler), seen)
        state = msgspec.structs.replace(state, scaling=msgspec.to_builtins(after), nodes_wanted=verdict.nodes_wanted)
        return state, verdict.saturated, verdict.rule

    def _result(
        self, state: CoupledState, policy: dict[str, Any], verdict: Verdict, scaling_rule: str
    ) -> tuple[CoupledState, Verdict]:
        state = msgspec.structs.replace(state, policy=policy, held=holds(verdict))
        rule = f"{verdict.rule}; {scaling_rule}"
        return state, msgspec.structs.replace(verdict, nodes_wanted=state.nodes_wanted, rule=rule)


def holds(verdict: Verdict) -> bool:
    """Whether this verdict slows anybody."""
    return (
        verdict.rate_per_device is not None
        or any(rate is not None for rate in verdict.classes.values())
        or any(band > 1 for band in verdict.dead_bands.values())
    )


def _released(verdict: Verdict) -> Verdict:
    return Verdict(
        phase="idle",
        rate_per_device=None,
        capacity_per_s=verdict.capacity_per_s,
        demand_per_s=verdict.demand_per_s,
        rule="nobody is held: the autoscaler is not saturated",
        rejected=f"hold the devices now ({verdict.rule}): more nodes can still help",
    )


def _restored(plain: dict[str, Any], owner: SendRatePolicy[PolicyState] | Autoscaler[PolicyState]) -> PolicyState:
    """A state that does not fit (another policy's, say) begins anew."""
    try:
        return msgspec.convert(plain, owner.state_type)
    except msgspec.ValidationError:
        return owner.initial()
