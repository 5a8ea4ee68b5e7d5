"""Feedback control of send rates from what leaves the queue, as published by Gotin et al. (ICPE 2019).

Phases, and the only edges between them::

    idle     --overload-->              protect
    protect  --overload resolved-->     recover
    recover  --overload-->              protect
    recover  --S_default reached-->     idle

Rates, per device, N connected devices::

    R            = departure rate of the queue while it is overloaded; raised whenever a departure rate exceeds it
    S'           = R / N
    S'_cap       = min(S', S_default)
    S'_protect   = S'_cap * k_protect                                  k_protect < 1: the queue gets shorter
    S'_recover(t) = S'_recover(t - T) * k_recover, from the last S'_protect     k_recover > 1: R may have been too small

Regimes. *idle*: nobody is held. *protect*: R follows the departure rate, down as well as up, because the publication
estimates the *current* rate: a processing node that has become slower since the last episode is seen at the first
step. *recover*: R is not used; the rate grows until it either meets an overload, which estimates R anew, or reaches
the default.

Where the publication leaves a choice:

* It takes one waiting message as proof of full capacity. Micro-batches leave messages waiting at all times, also in
  calm, so here the proof is the overload itself. R matters in protect alone, and there both say the same.
* T is not given, nor whether protect has iterations. Both phases set a rate once per T: a device hears advice with its
  next acknowledgement, so a faster step would act on what cannot have had an effect yet.

Clamps, each with its reason:

* ``min(S', S_default)``: published; nobody is asked for more than the default.
* N = 0 or R unknown leaves S' without a bound, and the cap alone decides: no evidence holds nobody further down.
* A departure rate of 0 leaves R as it was. A stalled application shows no rate, and a rate of 0 would silence devices
  for good: advice rides on the acknowledgement of their own messages.
* ``RATE_PER_S_MIN``: the longest interval that advice can name.
"""

import math
from typing import Annotated, Literal

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.model.advice import RATE_PER_S_MIN

Phase = Literal["idle", "protect", "recover"]


class GotinSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The publication's constants, with the values of its case study as defaults."""

    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0  # S_default
    k_protect: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.98
    k_recover: Annotated[float, msgspec.Meta(gt=1)] = 1.1
    iteration_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # T


class GotinState(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase = "idle"
    capacity_per_s: float | None = None  # R
    rate_per_device: float | None = None  # S'_protect or S'_recover; None while idle
    stepped_at_s: float = 0.0  # when the rate was set last


class Gotin:
    def __init__(self, settings: GotinSettings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[GotinState]:
        return GotinState

    def initial(self) -> GotinState:
        return GotinState()

    def step(self, state: GotinState, seen: Seen) -> tuple[GotinState, Verdict]:
        state = msgspec.structs.replace(
            state,
            capacity_per_s=_capacity(state.capacity_per_s, seen),
            stepped_at_s=min(state.stepped_at_s, seen.at_s),  # the clock may have been set back
        )
        if seen.overload:
            return self._protect(state, seen)
        if state.phase == "idle" or state.rate_per_device is None:
            return state, _verdict(state, "idle: not overloaded", "hold the devices: the queue keeps up")
        return self._recover(state, seen, state.rate_per_device)

    def _protect(self, state: GotinState, seen: Seen) -> tuple[GotinState, Verdict]:
        settings, capacity = self._settings, state.capacity_per_s
        if state.phase != "protect" or seen.at_s - state.stepped_at_s >= settings.iteration_s:
            supported = capacity / seen.devices if capacity is not None and seen.devices else math.inf
            capped = min(supported, settings.default_rate_per_s)
            state = msgspec.structs.replace(
                state,
                phase="protect",
                rate_per_device=max(capped * settings.k_protect, RATE_PER_S_MIN),
                stepped_at_s=seen.at_s,
            )
        known = "unknown" if capacity is None else f"{capacity:,.0f} msg/s"
        rule = (
            f"protect: min(R / N, S_default) * k_protect = min({known} / {seen.devices:,}, "
            f"{settings.default_rate_per_s:g}) * {settings.k_protect:g} = {state.rate_per_device:.3g} msg/s per device"
        )
        return state, _verdict(state, rule, f"leave devices at {settings.default_rate_per_s:g} msg/s: the queue grows")

    def _recover(self, state: GotinState, seen: Seen, before: float) -> tuple[GotinState, Verdict]:
        """The overload is resolved: from the last S'_protect upwards, one factor per T."""
        settings = self._settings
        if state.phase == "protect":
            state = msgspec.structs.replace(state, phase="recover", stepped_at_s=seen.at_s)
            rule = f"recover: overload resolved, start from the last S'_protect = {before:.3g} msg/s"
            return state, _verdict(state, rule, "return to the default at once: that caused the overload")
        if seen.at_s - state.stepped_at_s < settings.iteration_s:
            return state, _verdict(state, "recover: the next step is not due", "go faster: one step per iteration")
        rate = before * settings.k_recover
        rule = f"recover: S'_recover(t - T) * k_recover = {before:.3g} * {settings.k_recover:g} = {rate:.3g} msg/s"
        if rate >= settings.default_rate_per_s:
            state = msgspec.structs.replace(state, phase="idle", rate_per_device=None, stepped_at_s=seen.at_s)
            rule = f"{rule}, which reaches S_default = {settings.default_rate_per_s:g}"
            return state, _verdict(state, rule, "go on holding: the default is reached without an overload")
        # A late step keeps the beat; after a gap it is one step, not several that nobody has seen the effect of.
        beat_s = max(state.stepped_at_s + settings.iteration_s, seen.at_s - settings.iteration_s / 2)
        state = msgspec.structs.replace(state, rate_per_device=rate, stepped_at_s=beat_s)
        return state, _verdict(state, rule, "stay where it is: R may have been estimated too small")


def _capacity(known: float | None, seen: Seen) -> float | None:
    """R: the departure rate while overloaded, else only ever raised; 0 is no estimate."""
    departure = seen.departure_per_s
    if departure <= 0:
        return known
    if seen.overload:
        return departure
    return departure if known is not None and departure > known else known


def _verdict(state: GotinState, rule: str, rejected: str) -> Verdict:
    return Verdict(
        phase=state.phase,
        rate_per_device=state.rate_per_device,
        capacity_per_s=state.capacity_per_s,
        rule=rule,
        rejected=rejected,
    )
