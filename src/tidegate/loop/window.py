"""A sliding window of counters, read as rates.

Tables take messages in steps, a batch at a time. A rate over a window's edges would depend on where in a step the
edges fall: with batches of 1.5 s in a window of 3 s it is wrong by half. So departures are measured between *anchors*,
moments at which no step is under way: a commit, or nothing waiting at all. Only the newest steps count, as many as make
up a third of the window: in a flood the steps grow to the application's limit, and those before it would hide that.
When the next step takes longer than any before it, the time since the last anchor counts too, so a stalled application
shows a falling rate and then none. A step longer than two windows is a stall, not a rate: counting begins anew at its
end. So a window has to be longer than half a batch.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tidegate.model.observations import ClassState, GatewayState, Observation

EASED = 2  # so many commits without work at its limit, and a node is not there any more


class Point(NamedTuple):
    at_s: float
    total: int


class Worked(NamedTuple):
    """Sums over all observations so far: what nodes did at their limit, and how long they were there."""

    at_s: float
    limit_rows: float = 0.0
    limit_s: float = 0.0
    nodes_s: float = 0.0


class Report(NamedTuple):
    """What a gateway said of its classes, and when that was seen first."""

    at_s: float
    measured_at_s: float
    classes: Mapping[str, ClassState]


class WorkAtLimit(NamedTuple):
    """The window's work at the limit. ``node_rate_per_s`` is None where there was none: idle nodes prove nothing.
    ``classes_per_s`` lacks a class of which some gateway has said only once how much it published."""

    node_rate_per_s: float | None
    busy_share: float
    classes_per_s: dict[str, float]


class Window:
    """The last ``window_s`` of counters, and one point before it: the window is covered, not cut short."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._last: Observation | None = None
        self._gaps_s: deque[float] = deque(maxlen=2)
        self._arrivals: deque[Point] = deque()
        self._anchors: deque[Point] = deque()
        self._worked: deque[Worked] = deque()
        self._reports: dict[str, deque[Report]] = {}  # by gateway
        self._eased: dict[str, int] = {}  # by node: how often it has committed since it was seen at its limit

    def add(self, observation: Observation) -> bool:
        """Take an observation in; False for one that is not newer than the last: it says nothing new. Nor does one of
        no moment at all."""
        last, at_s = self._last, observation.at_s
        if not math.isfinite(at_s):
            return False
        if last is not None and last.at_s - self._window_s < at_s <= last.at_s:
            return False
        if last is not None and _began_anew(last, observation):
            self._arrivals.clear()
            self._anchors.clear()
            self._worked.clear()
            self._reports.clear()
            self._eased.clear()
            last = None
        if last is not None:
            self._gaps_s.append(at_s - last.at_s)
        if last is not None and at_s - last.at_s > self._window_s:
            self._eased.clear()  # who was at his limit so long ago need not be there now
        self._eased = _eased(self._eased, last, observation)
        self._last = observation
        self._worked.append(_worked(self._worked[-1] if self._worked else None, last, observation))
        self._reports = {one.name: self._reported(one, at_s) for one in observation.gateways}
        self._arrivals.append(Point(at_s, observation.arrived))
        grew = last is not None and observation.committed > last.committed
        if grew or observation.waiting == 0:
            if self._anchors and at_s - self._anchors[-1].at_s > 2 * self._window_s:
                self._anchors.clear()
            self._anchors.append(Point(self._anchored_s(observation, grew=grew), observation.committed))
        for points in (self._arrivals, self._anchors, self._worked):
            while len(points) > 2 and points[1].at_s <= at_s - self._window_s:
                points.popleft()
        return True

    def _reported(self, gateway: GatewayState, at_s: float) -> deque[Report]:
        """Its reports of the last window that it reported in: one that is silent is no zero, nor is what it says at
        once when it speaks again a burst."""
        reports = self._reports.get(gateway.name, deque())
        last = reports[-1] if reports else None
        if last is not None and last.measured_at_s == gateway.measured_at_s:
            return reports
        if last is not None and _fell(last.classes, gateway.classes):
            reports.clear()
        reports.append(Report(at_s, gateway.measured_at_s, gateway.classes))
        while len(reports) > 2 and reports[1].at_s <= at_s - self._window_s:
            reports.popleft()
        return reports

    def _anchored_s(self, observation: Observation, *, grew: bool) -> float:
        """When the step ended: the node's own word where it fits between the anchors, else when it was seen."""
        earliest_s = self._anchors[-1].at_s if self._anchors else observation.at_s - self._window_s
        said_s = observation.committed_at_s
        return said_s if grew and earliest_s < said_s <= observation.at_s else observation.at_s

    @property
    def is_full(self) -> bool:
        """Whether a whole window has been seen."""
        return bool(self._arrivals) and self._arrivals[-1].at_s - self._arrivals[0].at_s >= self._window_s

    @property
    def round_s(self) -> float:
        """How far apart observations are: the shorter one of the last two gaps, because one may have been a stall."""
        return min(self._gaps_s, default=0.0)

    def arrival_per_s(self) -> float:
        return _slope(self._arrivals[0], self._arrivals[-1]) if self._arrivals else 0.0

    def departure_per_s(self) -> float:
        return self._departure(self._last.at_s) if self._last is not None else 0.0

    def at_limit(self) -> int:
        """Nodes whose newest work is at their limit. A commit may be told a moment before that it was."""
        working = () if self._last is None else (node for node in self._last.nodes if node.is_working)
        return sum(node.full or self._eased.get(node.name, EASED) < EASED for node in working)

    def work(self) -> WorkAtLimit:
        """What the nodes did at their limit within the window, and how much each class published."""
        if not self._worked or self._last is None:
            return WorkAtLimit(None, 0.0, {})
        first, last = self._worked[0], self._worked[-1]
        rows, seconds = last.limit_rows - first.limit_rows, last.limit_s - first.limit_s
        nodes_s = last.nodes_s - first.nodes_s
        return WorkAtLimit(
            node_rate_per_s=rows / seconds if rows > 0 and seconds > 0 else None,
            busy_share=min(1.0, seconds / nodes_s) if nodes_s > 0 else 0.0,
            classes_per_s=self._classes_per_s(self._last.classes),
        )

    def _classes_per_s(self, classes: Iterable[str]) -> dict[str, float]:
        found = {name: [_published_per_s(one, name) for one in self._reports.values()] for name in classes}
        known = {name: [rate for rate in rates if rate is not None] for name, rates in found.items()}
        return {name: sum(rates) for name, rates in known.items() if len(rates) == len(found[name])}

    def _departure(self, now_s: float) -> float:
        if len(self._anchors) < 2:
            return 0.0
        last = self._anchors[-1]
        long_enough = [point for point in self._anchors if last.at_s - point.at_s >= self._window_s / 3]
        first = long_enough[-1] if long_enough else self._anchors[0]
        step_s_max = max(after.at_s - before.at_s for before, after in pairwise(self._anchors))
        if now_s - last.at_s > max(self._window_s, 2 * step_s_max):
            return 0.0
        return _slope(first, Point(max(last.at_s, now_s - step_s_max), last.total))


def _worked(before: Worked | None, last: Observation | None, now: Observation) -> Worked:
    """Counters of who has just come, or began anew, grow from what they say first: where it was before is unknown, as
    it is where one was no number."""
    if before is None or last is None:
        return Worked(now.at_s)
    known = {node.name: node for node in last.nodes if node.alive}
    rows, seconds = before.limit_rows, before.limit_s
    for node in now.nodes:
        was = known.get(node.name) if node.alive else None
        if was is None:
            continue
        more, longer_s = node.limit_rows - was.limit_rows, node.limit_s - was.limit_s
        if 0 <= more < math.inf and 0 <= longer_s < math.inf:
            rows, seconds = rows + more, seconds + longer_s
    passed_s = now.at_s - last.at_s
    return Worked(now.at_s, rows, seconds, before.nodes_s + passed_s * _working(now))


def _fell(before: Mapping[str, ClassState], now: Mapping[str, ClassState]) -> bool:
    return any(name in before and one.publishes < before[name].publishes for name, one in now.items())


def _published_per_s(reports: Sequence[Report], name: str) -> float | None:
    """Between the first and the last report that has the class; None where it has just begun to be counted."""
    counted = [(one.at_s, one.classes[name].publishes) for one in reports if name in one.classes]
    if len(counted) < 2:
        return None if name in reports[-1].classes else 0.0
    (first_s, first), (last_s, last) = counted[0], counted[-1]
    return (last - first) / (last_s - first_s)


def _eased(before: dict[str, int], last: Observation | None, now: Observation) -> dict[str, int]:
    known = {} if last is None else {node.name: node for node in last.nodes if node.alive}
    found = {}
    for node in now.nodes:
        was = known.get(node.name)
        if was is None or not node.alive:
            continue
        eased = before.get(node.name, EASED)
        if node.limit_s > was.limit_s:
            eased = 0
        elif node.rows > was.rows:
            eased = min(EASED, eased + 1)
        found[node.name] = eased
    return found


def _working(observation: Observation) -> int:
    return sum(node.is_working for node in observation.nodes)


def _began_anew(last: Observation, now: Observation) -> bool:
    """Counters that fall, or a clock that went back: what was seen before says nothing about a rate."""
    return now.at_s < last.at_s or now.arrived < last.arrived or now.committed < last.committed


def _slope(first: Point, last: Point) -> float:
    return (last.total - first.total) / (last.at_s - first.at_s) if last.at_s > first.at_s else 0.0
