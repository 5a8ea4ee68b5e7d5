"""A policy that is told the truth. How far another policy stays behind it says what better sensing could gain.

Rates, per device, N connected devices::

    S = (u * C - Q / H) / N          C: true capacity at the present mixture of messages, u: the share of it to use
                                     Q: messages that wait beyond those in service
    H = max(h, 2 * (N + Q) / C)      the time in which Q shall be worked off

Regimes. *idle*: S reaches the default, nobody is held. *protect*: every device, of whatever class, gets the same S.

It needs no sensor, so it suffers neither their period nor their delay nor their noise. What it cannot escape is that a
device hears its next rate only with its next message. It is therefore a yardstick, not a bound: it does not know the
future.

Clamps, each with its reason:

* ``2 * (N + Q) / C`` below H: (N + Q) / C is an interval that is just long enough for the queue and one message of
  every device. A device hears of a rate with one message and shows it with the next, so two of them pass until a
  correction is felt; a faster one is made twice, and afterwards capacity is idle. It also keeps S above 0.
* ``min_share`` of the default, and the default, bound S as in ``carry_over``: a capacity of 0 would silence devices,
  and nothing says for how long.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.carry_over import even_share, shared_verdict
from tidegate.model.advice import RATE_PER_S_MIN
from tidegate.model.errors import UserError


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """What no sensor can see: the system as it is at this very moment."""

    capacity_per_s: float  # messages per second of all working nodes, at the present mixture of messages
    devices: int
    waiting: int  # messages in the queue and in service
    nodes_working: int  # that work; each has one message in service


class OracleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0  # S_default
    horizon_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # h
    utilisation: Annotated[float, msgspec.Meta(gt=0.5, le=1)] = 1.0  # u
    min_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.01  # of the default rate


class OracleState(msgspec.Struct, frozen=True):
    """Nothing is remembered: the truth needs no memory."""


class Oracle:
    """``truth`` is set by the simulation before its run; it is the one thing here that is no setting and no state."""

    def __init__(self, settings: OracleSettings) -> None:
        self._settings = settings
        self.truth: Callable[[], Truth] | None = None

    @property
    def state_type(self) -> type[OracleState]:
        return OracleState

    def initial(self) -> OracleState:
        return OracleState()

    def step(self, state: OracleState, seen: Seen) -> tuple[OracleState, Verdict]:  # noqa: ARG002 - it has the truth
        if self.truth is None:
            raise UserError(
                "The policy oracle knows the true capacity, and only a simulation can tell it: use it with "
                "`tidegate simulate`, or choose another policy for the controller."
            )
        truth = self.truth()
        settings = self._settings
        rate = even_share(
            self._total_per_s(truth),
            truth.devices,
            default_rate_per_s=settings.default_rate_per_s,
            min_share=settings.min_share,
        )
        share = "enough for the default" if rate is None else f"{rate:.3g} msg/s per device"
        rule = (
            f"(u * C - Q / H) / N with C = {truth.capacity_per_s:,.1f} msg/s, Q = {_queued(truth):,}, "
            f"N = {truth.devices:,} gives {share}"
        )
        return state, shared_verdict(rate, truth.capacity_per_s, rule)

    def _total_per_s(self, truth: Truth) -> float:
        queued = _queued(truth)
        if truth.capacity_per_s <= 0:
            return 0.0
        horizon_s = max(self._settings.horizon_s, 2 * (truth.devices + queued) / truth.capacity_per_s)
        return self._settings.utilisation * truth.capacity_per_s - queued / horizon_s


def _queued(truth: Truth) -> int:
    return max(0, truth.waiting - truth.nodes_working)
