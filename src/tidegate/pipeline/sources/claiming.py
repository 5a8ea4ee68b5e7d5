"""Taking slices up: each is judged by itself, so that one whose log or document is broken keeps no other waiting."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from tidegate.brokers.port import SlicedLog, Span
from tidegate.bus.client import Bus
from tidegate.bus.noted_gaps import NotedGaps
from tidegate.model.errors import BrokerUnavailableError, TidegateError
from tidegate.model.positions import sequence_of
from tidegate.pipeline.sources.continuing import Verdict, behind_hole, judge
from tidegate.pipeline.sources.rows import mark_in_log
from tidegate.pipeline.tables.tables import Mark, Tables

# How long a log may look shorter than the tables have it before that is believed: a broker that has just started may
# not have all of it yet. All slices wait at the same time, and those that do not wait go on.
SHORTER_S_MAX = 5.0
SHORTER_POLL_S = 0.5
# A slice that could not be judged is tried again so much later: trying takes time that others wait for.
AGAIN_S = 2.0
# How long the node's alarm says what happened once.
NOTICE_S = 600.0


class _Judged(NamedTuple):
    place: int  # where the tables had the slice
    verdict: Verdict


class Claims:
    """What one query has claimed. Where each slice goes on is decided before its fence is moved."""

    def __init__(self, node: str, log: SlicedLog, bus: Bus, tables: Tables) -> None:
        self._node, self._log, self._tables = node, log, tables
        self._gaps = NotedGaps(bus)
        self._unproven: dict[int, int] = {}  # slice -> the place that it began at without a message there
        self._shorter_since_s: dict[int, float] = {}
        self._ask_at_s: dict[int, float] = {}  # slices that could not be claimed, and when to try again
        self._holes: dict[int, tuple[int, int]] = {}  # slice -> its place before a hole, the first message behind it
        self._problems: dict[int, str] = {}  # slices that cannot be claimed
        self._notices: dict[str, float] = {}  # what happened once -> until when to say it

    def claim(self, wanted: Mapping[int, int], spans: Mapping[int, Span]) -> dict[int, int]:
        """Where those of the wanted slices go on that could be claimed under their epochs."""
        readings = self._tables.readings
        judged: dict[int, _Judged] = {}
        for slice_ in wanted:
            at = readings.position(slice_)
            if at.epoch <= wanted[slice_] and (found := self._judged(slice_, at.offset, spans[slice_])):
                judged[slice_] = found
        ready = {s: epoch for s, epoch in wanted.items() if s in judged or readings.position(s).epoch > epoch}

        def where(slice_: int, place: int, _: Mark | None) -> int:
            """It was judged where the tables had it; once it is claimed, they have it where it goes on."""
            if slice_ not in judged or place not in (judged[slice_].place, judged[slice_].verdict.start):
                raise BrokerUnavailableError(f"Slice {slice_} has moved on while it was claimed: it is claimed again.")
            return judged[slice_].verdict.start

        claimed = self._tables.claim(ready, where) if ready else {}
        for slice_ in claimed:
            self._holes.pop(slice_, None)
            if judged[slice_].verdict.is_proven:
                self._unproven.pop(slice_, None)
            else:
                self._unproven[slice_] = judged[slice_].verdict.start
        return claimed

    def refused(self, wanted: Mapping[int, int]) -> list[int]:
        """Of which the tables have seen higher epochs than these, as of the last claim."""
        return [slice_ for slice_, epoch in self._tables.epochs(wanted).items() if epoch > wanted[slice_]]

    def is_proven(self, slice_: int, after: int) -> bool:
        """Whether the log has the message at this place."""
        return sequence_of(after) > 0 and self._unproven.get(slice_) != after

    def pass_hole(self, slice_: int, place: int, found: int) -> None:
        """The messages behind ``place`` are missing for certain: the next claim goes on at ``found``."""
        self._holes[slice_] = (place, found)

    def sentences(self) -> list[str]:
        now_s = time.monotonic()
        self._notices = {notice: until_s for notice, until_s in self._notices.items() if now_s < until_s}
        return [*self._problems.values(), *self._notices]

    def _judged(self, slice_: int, place: int, span: Span) -> _Judged | None:
        """None where the slice has to wait. A gap is on the bus before the table moves on: nobody can miss it."""
        now_s = time.monotonic()
        if now_s < self._ask_at_s.get(slice_, 0.0):
            return None
        try:
            verdict = self._verdict(slice_, place, span)
            if self._has_to_wait(slice_, verdict, now_s):
                self._ask_at_s[slice_] = now_s + SHORTER_POLL_S
                return None
            if verdict.gap is not None and (replaced := self._gaps.note(verdict.gap)):
                self._notices[replaced] = now_s + NOTICE_S
        except TidegateError as error:
            self._ask_at_s[slice_] = time.monotonic() + AGAIN_S
            self._problems[slice_] = f"Slice {slice_} cannot be taken up, and is tried again: {error}"
            return None
        self._problems.pop(slice_, None)
        return _Judged(place, verdict)

    def _verdict(self, slice_: int, place: int, span: Span) -> Verdict:
        found, now_s = mark_in_log(self._log, slice_, place, span), time.time()
        expected = self._tables.readings.mark(slice_)
        verdict = judge(slice_, place, expected, span, found, node=self._node, now_s=now_s)
        before, behind = self._holes.get(slice_, (-1, 0))
        if verdict.gap is None and place == before:
            if self._log.next_sequence(slice_, sequence_of(place) + 1) == behind:
                return behind_hole(slice_, place, behind, span, node=self._node, now_s=now_s)
            del self._holes[slice_]
        return verdict

    def _has_to_wait(self, slice_: int, verdict: Verdict, now_s: float) -> bool:
        if verdict.gap is None or verdict.gap.kind != "shorter":
            self._shorter_since_s.pop(slice_, None)
            return False
        return now_s - self._shorter_since_s.setdefault(slice_, now_s) < SHORTER_S_MAX
