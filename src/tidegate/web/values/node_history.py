"""The last two minutes of every processing node: its batches, what arrived for it, what it did, what it can do."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from tidegate.model.observations import NodeState, SliceState
from tidegate.model.progress import BATCHES_SAID, Batch
from tidegate.model.view import ChainStates
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.publish_rates import WINDOW_S

# Refusals are seldom: they are counted over a minute, and not at all before some of it has passed.
REFUSALS_S, REFUSALS_S_MIN = 60.0, 10.0


class NodeMoment(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the charts. None is what is not known."""

    at_s: float
    arriving_per_s: float | None
    processed_per_s: float | None
    capacity_per_s: float | None


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one node's past; what is not known yet is not in here."""

    moments: tuple[NodeMoment, ...] = ()
    batches: tuple[Batch, ...] = ()  # oldest first
    refused_per_min: Mapping[str, float] | None = None  # readings, by reason

    @property
    def now(self) -> NodeMoment | None:
        return self.moments[-1] if self.moments else None

    @property
    def processed_per_s(self) -> float | None:
        """The newest that is known: while a batch is under way nobody knows what it will have done."""
        return next((one.processed_per_s for one in reversed(self.moments) if one.processed_per_s is not None), None)


class NodeHistory:
    """Follows every node that is seen. One that has gone is remembered for as long as charts show it."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}
        self._arrivals: dict[int, deque[tuple[float, int]]] = {}
        self._at_s = 0.0

    def follow(self, chain: ChainStates, at_s: float) -> None:
        """``at_s`` is when the chain was measured; the same measurement twice says nothing new."""
        if at_s < self._at_s - WINDOW_S:
            self._followed, self._arrivals = {}, {}  # somebody set the clock back
        self._at_s = at_s
        for one in chain.slices:
            _take_in(self._arrivals.setdefault(one.number, deque()), at_s, one.stored)
        for node in chain.nodes:
            arriving = self._arriving_per_s(node, chain.slices)
            self._followed.setdefault(node.name, _Followed()).take_in(node, at_s, arriving)
        begin_s = at_s - SPAN_S
        self._followed = {name: one for name, one in self._followed.items() if one.seen_s > begin_s}

    def records(self) -> dict[str, NodeRecord]:
        return {name: one.record() for name, one in sorted(self._followed.items())}

    def _arriving_per_s(self, node: NodeState, slices: Sequence[SliceState]) -> float | None:
        """Half a sum would pass for the whole, so all of its slices have to be known."""
        if not node.alive or not slices:
            return None
        rates = [_rate(self._arrivals[one.number]) for one in slices if one.owner == node.name]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if len(known) == len(rates) else None


class _Counters(NamedTuple):
    """What a node counted until a moment."""

    at_s: float
    rows: int
    limit_rows: float
    limit_s: float
    rejects: Mapping[str, int]


class _Followed:
    def __init__(self) -> None:
        self._seen: deque[_Counters] = deque()
        self._moments: deque[tuple[float, float | None, float | None]] = deque()  # when, arriving, capacity
        self._batches: deque[Batch] = deque()
        self._is_ready = False

    @property
    def seen_s(self) -> float:
        return self._moments[-1][0]

    def take_in(self, node: NodeState, at_s: float, arriving_per_s: float | None) -> None:
        if self._moments and at_s <= self.seen_s:
            return
        if self._seen and node.rows < self._seen[-1].rows:
            self._seen.clear()  # it began anew, and counts from zero
        self._seen.append(_Counters(at_s, node.rows, node.limit_rows, node.limit_s, node.rejects))
        while len(self._seen) > 2 and self._seen[1].at_s <= at_s - SPAN_S:
            self._seen.popleft()
        capacity_per_s = self._capacity_per_s()
        if self._moments and math.floor(self.seen_s) == math.floor(at_s):
            self._moments.pop()  # a line that is finer than a second would look the same
        self._moments.append((at_s, arriving_per_s, capacity_per_s))
        self._add_batches(node.batches)
        self._is_ready = node.is_working
        begin_s = at_s - SPAN_S
        while self._moments[0][0] < begin_s:
            self._moments.popleft()
        while self._batches and self._batches[0].at_s < begin_s - WINDOW_S:
            self._batches.popleft()

    def _add_batches(self, said: Sequence[Batch]) -> None:
        newest_s = self._batches[-1].at_s if self._batches else 0.0
        unseen = [one for one in said if one.at_s > newest_s]
        if len(unseen) >= BATCHES_SAID:
            self._batches.clear()  # there may have been more before these: a gap must not look like idleness
        self._batches += unseen

    def _capacity_per_s(self) -> float | None:
        """From its work at the limit within the span; where there was none, as it was last, or since it started.

        Over less than that, one batch of few rows on a busy machine would pass for what the node can do.
        """
        first, last = self._seen[0], self._seen[-1]
        rows, seconds = last.limit_rows - first.limit_rows, last.limit_s - first.limit_s
        if rows > 0 and seconds > 0:
            return rows / seconds
        if self._moments and self._moments[-1][2] is not None:
            return self._moments[-1][2]
        return last.limit_rows / last.limit_s if last.limit_s > 0 else None

    def record(self) -> NodeRecord:
        work = _Work(self._batches, self.seen_s, is_ready=self._is_ready)
        return NodeRecord(
            moments=tuple(
                NodeMoment(
                    at_s=at_s,
                    arriving_per_s=arriving,
                    processed_per_s=work.per_s(at_s),
                    capacity_per_s=capacity,
                )
                for at_s, arriving, capacity in self._moments
            ),
            batches=tuple(one for one in self._batches if one.at_s >= self.seen_s - SPAN_S),
            refused_per_min=self._refused_per_min(),
        )

    def _refused_per_min(self) -> dict[str, float] | None:
        last = self._seen[-1]
        first = next(seen for seen in self._seen if seen.at_s >= last.at_s - REFUSALS_S)
        passed_s = last.at_s - first.at_s
        if passed_s < REFUSALS_S_MIN:
            return None
        return {
            reason: max(0, count - first.rejects.get(reason, 0)) * 60 / passed_s
            for reason, count in last.rejects.items()
        }


class _Work:
    """Rows done until a moment, each batch's spread evenly over the time that it took.

    A rate over a window of whole batches would jump with how many of them happen to end within it.
    """

    def __init__(self, batches: Sequence[Batch], now_s: float, *, is_ready: bool) -> None:
        self._batches = tuple(batches)
        self._ends_s = [one.at_s for one in self._batches]
        self._sums = [0, *accumulate(one.rows for one in self._batches)]
        # What a batch under way will have done is not known before it could have ended.
        longest_s = max((one.seconds for one in self._batches[-10:]), default=0.0)
        last_s = self._ends_s[-1] if self._ends_s else 0.0
        is_idle = is_ready and now_s - last_s > 2 * longest_s + 1.0
        self._until_s = now_s if is_idle else last_s
        self._from_s = self._batches[0].at_s - self._batches[0].seconds if self._batches else 0.0

    def per_s(self, at_s: float) -> float | None:
        if at_s > self._until_s or (self._batches and at_s < self._from_s + WINDOW_S):
            return None
        return (self._done(at_s) - self._done(at_s - WINDOW_S)) / WINDOW_S

    def _done(self, at_s: float) -> float:
        place = bisect_left(self._ends_s, at_s)
        if place == len(self._batches):
            return self._sums[-1]
        batch = self._batches[place]
        share = 1 - (batch.at_s - at_s) / batch.seconds if batch.seconds > 0 else 0.0
        return self._sums[place] + batch.rows * max(0.0, share)


def _take_in(kept: deque[tuple[float, int]], at_s: float, stored: int | None) -> None:
    """Counters of the last seconds; forgotten where nobody can say it any more, or where the log is another one."""
    if stored is None or (kept and (stored < kept[-1][1] or at_s < kept[-1][0])):
        kept.clear()
    if stored is not None and not (kept and at_s == kept[-1][0]):
        kept.append((at_s, stored))
    while len(kept) > 2 and kept[1][0] <= at_s - WINDOW_S:
        kept.popleft()


def _rate(kept: Sequence[tuple[float, int]]) -> float | None:
    if len(kept) < 2:
        return None
    (first_s, first), (last_s, last) = kept[0], kept[-1]
    return (last - first) / (last_s - first_s)
