"""The adaptive concurrency limit of Netflix, Gradient2, carried over to send rates.

The original limits how many requests are in a server at once, and refuses what comes in beyond. Here nothing is
refused: devices send at the rate that keeps as many messages in the system as the limit says. With L the limit, W the
messages in the system, q the queue that is allowed, and N devices::

    RTT      = time of a message in the system: age of the oldest one, at least one service time
    RTT_long = exponential mean of RTT over ``long_window`` steps; a plain mean for the first ten
    g        = max(0.5, min(1, tolerance * RTT_long / RTT))
    L        = (1 - smoothing) * L + smoothing * (L * g + q)
    S        = L / RTT / N                                              Little: L = rate * RTT

L / RTT is how a window becomes a rate. It corrects itself before L moves: more in the system than L allows means a long
RTT, so a rate below what leaves, until W is L again.

Regimes. *steady*: g is 1, L grows step by step until the queue it allows shows in RTT. *load*: RTT rises above what was
usual, L shrinks. *back from load*: RTT_long is still high; while it is more than twice RTT it loses 5 % per step.

Clamps, each with its reason:

* g within [0.5, 1]: published; one outlier takes at most half, and a lucky RTT proves no capacity.
* L stays while W < L / 2: published; who does not use its limit cannot show that a higher one works. It also bounds L.
* L at least ``limit_per_device`` * N, and q = ``queue_per_device`` * N: the original has 20 and 4 for one server;
  a fleet can be of any size. The first L is what the fleet sends by default, because no evidence holds nobody.
* RTT at least one service time or ``rtt_s_min``: an empty queue has no age, and a rate of L / 0 would be no limit.
* the others are those of ``carry_over``.

Source: Netflix concurrency-limits, ``com.netflix.concurrency.limits.limit.Gradient2Limit``.
"""

from typing import Annotated

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.carry_over import even_share, service_s, shared_verdict
from tidegate.model.advice import RATE_PER_S_MIN

WARM_UP_STEPS = 10
DRIFT_RATIO, DRIFT_FACTOR = 2.0, 0.95


class Gradient2Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0
    tolerance: Annotated[float, msgspec.Meta(ge=1)] = 1.5
    smoothing: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.2
    long_window: Annotated[int, msgspec.Meta(ge=1)] = 600  # steps
    limit_per_device: Annotated[float, msgspec.Meta(gt=0)] = 0.2  # least L
    queue_per_device: Annotated[float, msgspec.Meta(ge=0)] = 0.04  # q
    rtt_s_min: Annotated[float, msgspec.Meta(gt=0)] = 0.05
    min_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05  # of the default rate
    iteration_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class Gradient2State(msgspec.Struct, frozen=True, kw_only=True):
    limit: float | None = None  # L; None before the first step
    rtt_s: float = 0.0
    rtt_long_s: float = 0.0
    steps: int = 0  # counted as far as the warm-up
    stepped_at_s: float = 0.0


class Gradient2:
    def __init__(self, settings: Gradient2Settings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[Gradient2State]:
        return Gradient2State

    def initial(self) -> Gradient2State:
        return Gradient2State()

    def step(self, state: Gradient2State, seen: Seen) -> tuple[Gradient2State, Verdict]:
        # Where the clock was set back the last step was now, not in the future.
        state = msgspec.structs.replace(state, stepped_at_s=min(state.stepped_at_s, seen.at_s))
        if state.limit is not None and seen.at_s - state.stepped_at_s < self._settings.iteration_s:
            return state, self._verdict(state, seen, "the next step is not due")
        settings = self._settings
        rtt_s = max(seen.head_age_s, service_s(seen), settings.rtt_s_min)
        long_s = self._long(state, rtt_s)
        before = seen.devices * settings.default_rate_per_s * rtt_s if state.limit is None else state.limit
        gradient = max(0.5, min(1.0, settings.tolerance * long_s / rtt_s))
        limit, rule = before, f"{seen.waiting:,} messages use less than half of the limit of {before:,.1f}: it stays"
        if seen.waiting >= before / 2:
            wanted = before * gradient + settings.queue_per_device * seen.devices
            limit = before * (1 - settings.smoothing) + wanted * settings.smoothing
            rule = (
                f"L * g + q with g = {settings.tolerance:g} * {long_s:.3g} s / {rtt_s:.3g} s within [0.5, 1] takes L "
                f"from {before:,.1f} to {limit:,.1f}, L / RTT = {limit / rtt_s:,.1f} msg/s"
            )
        state = Gradient2State(
            limit=max(limit, settings.limit_per_device * seen.devices),
            rtt_s=rtt_s,
            rtt_long_s=long_s * DRIFT_FACTOR if long_s > DRIFT_RATIO * rtt_s else long_s,
            steps=min(state.steps + 1, WARM_UP_STEPS),
            stepped_at_s=seen.at_s,
        )
        return state, self._verdict(state, seen, rule)

    def _long(self, state: Gradient2State, rtt_s: float) -> float:
        if state.steps < WARM_UP_STEPS:
            return (state.rtt_long_s * state.steps + rtt_s) / (state.steps + 1)
        weight = 2.0 / (self._settings.long_window + 1)
        return state.rtt_long_s * (1 - weight) + rtt_s * weight

    def _verdict(self, state: Gradient2State, seen: Seen, rule: str) -> Verdict:
        rate = None
        if state.limit is not None:
            rate = even_share(
                state.limit / state.rtt_s,
                seen.devices,
                default_rate_per_s=self._settings.default_rate_per_s,
                min_share=self._settings.min_share,
            )
        return shared_verdict(rate, None, rule)
