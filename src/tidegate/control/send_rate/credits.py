"""Credits by queueing delay, as in Breakwater (Cho et al., OSDI 2020), carried over to send rates.

A Breakwater server issues credits, each the permission for one request; here a credit is the permission for one message
in one control period T. With C the pool, d the queueing delay, d_t its target and N devices, once per T::

    d < d_t:   C = C + A                                      A = max(alpha * N, 1)
    else:      C = C * max(1 - beta * (d - d_t) / d_t, 0.5)
    C_oc = overcommitment * max(C - arrivals in T, 0)
    S    = (C + C_oc) / N / T

C_oc: not every client can use its credits, so Breakwater issues more than the pool holds. It divides the unused ones
among its clients, and so does this.

Regimes. *full*: the pool has a credit for everything the fleet sends by default, nobody is held; it stays full when
devices come, because the original bounds its pool per client. *controlled*: additive increase, multiplicative decrease.

Clamps, each with its reason:

* the factor at least 0.5: published; one bad delay takes at most half.
* A at least 1: published; a small fleet recovers, too.
* C at most N * S_default * T, the original's bound per client.
* C at least one credit per node, published (per core), and at least ``min_share`` of what the fleet sends by
  default: a pool below what devices are told anyway would have to climb back unseen.
* the others are those of ``carry_over``.

The published alpha = 0.001 and beta = 0.02 belong to a period of a round trip in a data centre, ten microseconds. Here
a period is a second: the defaults reach a new capacity within some tens of periods.
"""

from typing import Annotated

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.carry_over import even_share, queueing_delay_s, shared_verdict
from tidegate.model.advice import RATE_PER_S_MIN


class CreditsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0
    target_delay_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # d_t
    alpha: Annotated[float, msgspec.Meta(gt=0)] = 0.02
    beta: Annotated[float, msgspec.Meta(gt=0)] = 0.1
    overcommitment: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    min_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05  # of the default rate
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # T


class CreditsState(msgspec.Struct, frozen=True, kw_only=True):
    credits: float | None = None  # C; None while the pool is full
    stepped_at_s: float | None = None


class Credits:
    def __init__(self, settings: CreditsSettings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[CreditsState]:
        return CreditsState

    def initial(self) -> CreditsState:
        return CreditsState()

    def step(self, state: CreditsState, seen: Seen) -> tuple[CreditsState, Verdict]:
        settings = self._settings
        stepped_at_s = None if state.stepped_at_s is None else min(state.stepped_at_s, seen.at_s)  # a clock set back
        if stepped_at_s is not None and seen.at_s - stepped_at_s < settings.period_s:
            state = CreditsState(credits=state.credits, stepped_at_s=stepped_at_s)
            return state, self._verdict(state.credits, seen, "the next step is not due")
        delay_s = queueing_delay_s(seen)
        full = seen.devices * settings.default_rate_per_s * settings.period_s
        if delay_s < settings.target_delay_s:
            credits, rule = self._grown(state.credits, full, delay_s, seen.devices)
        else:
            credits, rule = self._shrunk(state.credits, full, delay_s, seen.nodes_working)
        return CreditsState(credits=credits, stepped_at_s=seen.at_s), self._verdict(credits, seen, rule)

    def _grown(self, credits: float | None, full: float, delay_s: float, devices: int) -> tuple[float | None, str]:
        target = f"delay {delay_s:.2g} s < {self._settings.target_delay_s:g} s"
        if credits is None:
            return None, f"{target}: the pool stays full"
        more = max(self._settings.alpha * devices, 1.0)
        rule = f"{target}: C + A = {credits:,.1f} + {more:,.1f}"
        return (None, f"{rule} fills the pool") if credits + more >= full else (credits + more, rule)

    def _shrunk(self, credits: float | None, full: float, delay_s: float, nodes_working: int) -> tuple[float, str]:
        settings = self._settings
        before = full if credits is None else min(credits, full)
        excess = (delay_s - settings.target_delay_s) / settings.target_delay_s
        factor = max(1.0 - settings.beta * excess, 0.5)
        rule = (
            f"delay {delay_s:.2g} s against {settings.target_delay_s:g} s: C * max(1 - beta * (d - d_t) / d_t, 0.5) = "
            f"{before:,.1f} * {factor:.3g}"
        )
        return max(before * factor, float(nodes_working), settings.min_share * full), rule

    def _verdict(self, credits: float | None, seen: Seen, rule: str) -> Verdict:
        if credits is None:
            return shared_verdict(None, None, rule)
        settings = self._settings
        unused = max(credits - seen.arrival_per_s * settings.period_s, 0.0)
        rate = even_share(
            (credits + settings.overcommitment * unused) / settings.period_s,
            seen.devices,
            default_rate_per_s=settings.default_rate_per_s,
            min_share=settings.min_share,
        )
        return shared_verdict(rate, credits / settings.period_s, rule)
