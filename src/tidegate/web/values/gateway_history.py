"""The last two minutes of every gateway, from the states it publishes: counters become rates here."""

from collections import deque
from collections.abc import Mapping

import msgspec

from tidegate.model.observations import GatewayState
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.publish_rates import WINDOW_S, per_second, take_in

# Refusals are seldom: they are counted over a minute, and not at all before some of it has passed.
REFUSALS_S, REFUSALS_S_MIN = 60.0, 10.0


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the charts. A rate is None where the counter before is not known."""

    at_s: float
    connections: int
    held: int
    in_per_s: float | None
    acknowledged_per_s: float | None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one gateway's past; what is not known yet is not in here."""

    moments: tuple[Moment, ...] = ()
    refused_per_min: Mapping[str, float] | None = None  # by reason
    process_per_s: Mapping[int, float] = {}  # messages, by the process's number

    @property
    def now(self) -> Moment | None:
        return self.moments[-1] if self.moments else None


# By the gateway's name.
Records = Mapping[str, Record]


class GatewayHistory:
    """Follows every gateway that is seen. One that has gone is remembered for as long as charts show it."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}

    def follow(self, gateways: tuple[GatewayState, ...]) -> None:
        for state in gateways:
            self._followed.setdefault(state.name, _Followed()).take_in(state)
        begin_s = max((state.measured_at_s for state in gateways), default=0.0) - SPAN_S
        self._followed = {name: one for name, one in self._followed.items() if one.seen_s > begin_s}

    def records(self) -> dict[str, Record]:
        return {name: one.record() for name, one in sorted(self._followed.items())}


class _Followed:
    def __init__(self) -> None:
        self._recent: deque[GatewayState] = deque()  # for rates
        self._longer: deque[GatewayState] = deque()  # for refusals
        self._moments: deque[Moment] = deque()

    @property
    def seen_s(self) -> float:
        return self._moments[-1].at_s

    def take_in(self, state: GatewayState) -> None:
        if not take_in(self._recent, state, WINDOW_S):
            return
        take_in(self._longer, state, REFUSALS_S)
        first = self._recent[0]
        self._moments.append(
            Moment(
                at_s=state.measured_at_s,
                connections=state.connections,
                held=state.held,
                in_per_s=per_second(first, state, lambda one: one.publishes),
                acknowledged_per_s=per_second(first, state, lambda one: one.acknowledged),
            )
        )
        while self._moments[0].at_s < state.measured_at_s - SPAN_S:
            self._moments.popleft()

    def record(self) -> Record:
        return Record(
            moments=tuple(self._moments),
            refused_per_min=_refused_per_min(self._longer[0], self._longer[-1]),
            process_per_s=_process_per_s(self._recent[0], self._recent[-1]),
        )


def _refused_per_min(first: GatewayState, last: GatewayState) -> dict[str, float] | None:
    passed_s = last.measured_at_s - first.measured_at_s
    if passed_s < REFUSALS_S_MIN:
        return None
    return {
        reason: max(0, count - first.refused.get(reason, 0)) * 60 / passed_s for reason, count in last.refused.items()
    }


def _process_per_s(first: GatewayState, last: GatewayState) -> dict[int, float]:
    """A process that took the place of another has its number, and counts from zero."""
    passed_s = last.measured_at_s - first.measured_at_s
    before = {(one.number, one.pid): one.publishes for one in first.processes}
    return {
        one.number: max(0, one.publishes - before[one.number, one.pid]) / passed_s
        for one in last.processes
        if passed_s > 0 and (one.number, one.pid) in before
    }
