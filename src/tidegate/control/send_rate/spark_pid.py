"""The back-pressure of Spark Streaming, its PIDRateEstimator, carried over to send rates.

Spark limits what a receiver takes in; here the same estimate limits what a fleet sends. With P the processing rate, d
the scheduling delay, T the batch interval and dt the time since the last step::

    e    = r(t - T) - P                          the limit against what is really processed
    H    = d * P / T                             what piled up, as a rate that would have prevented it
    D    = (e - e(t - T)) / dt
    r(t) = max(r(t - T) - k_p * e - k_i * H - k_d * D, r_min)              k_p = 1, k_i = 0.2, k_d = 0
    S    = r / N

What stands for what:

* P: rows over the time spent on them, as in Spark: the rate of the nodes' work at their limit. Where they do not tell
  it, the departure rate during an overload; without either there is no step, as in Spark after an empty batch.
* d: how long the oldest message waited before its service.
* T: ``iteration_s``; a step happens once per T.
* r_min: Spark has 100 rows/s. A fleet can be of any size, so here it is a share of what it sends by default.

Regimes. The *first* step only takes P as r and limits nothing, as in Spark. Afterwards r is in force until the next
step. With k_p = 1 the last limit drops out: r = P - k_i * H.

Clamps, each with its reason: r_min as in Spark, so that data keeps coming from which P can be estimated; the others are
those of ``carry_over``.

Source: Apache Spark, ``org.apache.spark.streaming.scheduler.rate.PIDRateEstimator``.
"""

from typing import Annotated

import msgspec

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.carry_over import even_share, queueing_delay_s, shared_verdict
from tidegate.model.advice import RATE_PER_S_MIN

_Gain = Annotated[float, msgspec.Meta(ge=0)]


class SparkPidSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spark's own defaults, but for the least rate."""

    default_rate_per_s: Annotated[float, msgspec.Meta(ge=RATE_PER_S_MIN)] = 2.0
    proportional: _Gain = 1.0  # k_p
    integral: _Gain = 0.2  # k_i
    derivative: _Gain = 0.0  # k_d
    min_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05  # r_min, of what the fleet sends by default
    iteration_s: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # T


class SparkPidState(msgspec.Struct, frozen=True, kw_only=True):
    rate_per_s: float | None = None  # r; None before the first step
    error_per_s: float = 0.0  # e
    processing_per_s: float | None = None  # P, seen last
    limits: bool = False  # whether r is in force: not after the first step
    stepped_at_s: float = 0.0


class SparkPid:
    def __init__(self, settings: SparkPidSettings) -> None:
        self._settings = settings

    @property
    def state_type(self) -> type[SparkPidState]:
        return SparkPidState

    def initial(self) -> SparkPidState:
        return SparkPidState()

    def step(self, state: SparkPidState, seen: Seen) -> tuple[SparkPidState, Verdict]:
        # Where the clock was set back the last step was now, not in the future.
        state = msgspec.structs.replace(state, stepped_at_s=min(state.stepped_at_s, seen.at_s))
        processing = _processing_per_s(seen)
        if processing is None:
            return state, self._verdict(state, seen, "nothing was processed at the limit: the rate stays")
        if state.rate_per_s is None:
            state = SparkPidState(rate_per_s=processing, processing_per_s=processing, stepped_at_s=seen.at_s)
            return state, self._verdict(state, seen, f"first measurement: {processing:,.1f} msg/s are processed")
        if seen.at_s - state.stepped_at_s < self._settings.iteration_s:
            return state, self._verdict(state, seen, "the next step is not due")
        return self._estimate(state, seen, processing, state.rate_per_s)

    def _estimate(
        self, state: SparkPidState, seen: Seen, processing: float, before: float
    ) -> tuple[SparkPidState, Verdict]:
        settings, delay_s = self._settings, queueing_delay_s(seen)
        error = before - processing
        piled_up = delay_s * processing / settings.iteration_s
        drift = (error - state.error_per_s) / (seen.at_s - state.stepped_at_s)
        least = settings.min_share * settings.default_rate_per_s * seen.devices
        corrected = before - settings.proportional * error - settings.integral * piled_up - settings.derivative * drift
        rate = max(corrected, least, 0.0)
        state = SparkPidState(
            rate_per_s=rate, error_per_s=error, processing_per_s=processing, limits=True, stepped_at_s=seen.at_s
        )
        rule = (
            f"r - k_p * e - k_i * H - k_d * D with r = {before:,.1f}, P = {processing:,.1f} msg/s and a delay of "
            f"{delay_s:.2g} s gives {rate:,.1f} msg/s"
        )
        return state, self._verdict(state, seen, rule)

    def _verdict(self, state: SparkPidState, seen: Seen, rule: str) -> Verdict:
        rate = None
        if state.limits and state.rate_per_s is not None:
            rate = even_share(
                state.rate_per_s,
                seen.devices,
                default_rate_per_s=self._settings.default_rate_per_s,
                min_share=self._settings.min_share,
            )
        return shared_verdict(rate, state.processing_per_s, rule)


def _processing_per_s(seen: Seen) -> float | None:
    """P: at the nodes' limit, else what leaves in an overload."""
    if seen.node_rate_per_s and seen.nodes_working > 0:
        return seen.node_rate_per_s * seen.nodes_working
    return seen.departure_per_s if seen.overload and seen.departure_per_s > 0 else None
