"""Which slices this node may read, and how far each goes now. Lives in the process that Spark plans batches in."""

import time
from collections.abc import Mapping
from pathlib import Path

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.brokers.port import Span
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import GAPS
from tidegate.bus.installation import load_installation
from tidegate.control.slicing.transfer import Assignment
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, SequenceGapError
from tidegate.model.gaps import Gaps
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.sources.continuing import Verdict, judge
from tidegate.pipeline.sources.rows import mark_in_log
from tidegate.pipeline.tables.tables import Mark, Tables

Offset = dict[str, list[int]]
PROMISED_S_MAX = 0.3
PROMISED_POLL_S = 0.02
# How long a log may look shorter than the tables have it before that is believed.
SHORTER_S_MAX = 5.0
SHORTER_POLL_S = 0.5
# A stream that does not answer within this is left out, and asked again so much later.
PROBE_S = 1.0
SILENT_S = 10.0


class Planner:
    """The planner's connections, and the slices it may read."""

    def __init__(self, state: Path, node: str) -> None:
        installation = load_installation(state)
        self.log_address = address_of_log(installation)
        self._node = node
        self._log = open_log(self.log_address, name=f"{node}-planner")
        self._bus = Bus(installation.control_urls, name=f"{node}-planner")
        self._assignments = Assignments(self._bus, installation.slices)
        self._tables = Tables(Path(installation.tables))
        self._renewed = False
        self._probe = open_log(self.log_address, name=f"{node}-probe", timeout_s=PROBE_S)
        self._silent_until_s: dict[int, float] = {}  # slices whose stream does not answer, and when to ask again
        self._unproven: dict[int, int] = {}  # slice -> the place that it began at without a message there
        self.last_ends: dict[int, int] = {}
        self.message_bytes: dict[int, float] = {}  # of each slice's messages on average, as last asked for

    def close(self) -> None:
        self._log.close()
        self._probe.close()
        self._bus.close()

    def held_slices(self, start: Offset) -> dict[int, list[int]]:
        """Let go of slices that have a taker, claim slices that are new here; what is held, as [epoch, from, to].

        Without the control bus, or where it cannot say who owns what, the node goes on with what it holds: the table
        would refuse it if that were wrong.
        """
        held = {int(name): at for name, at in start.items()}
        try:
            owned = self._settle(held)
            kept = {s: at for s, at in held.items() if owned.get(s) == at[0]}
            kept.update(self._claim({s: epoch for s, epoch in owned.items() if s not in kept}))
        except (BrokerUnavailableError, DamagedDocumentError):
            return held
        return kept

    def _claim(self, wanted: dict[int, int]) -> dict[int, list[int]]:
        wanted = {slice_: wanted[slice_] for slice_ in self._spans(list(wanted))}
        if not wanted:
            return {}
        claimed = self._tables.claim(wanted, self._continue)
        refused = [slice_ for slice_ in wanted if slice_ not in claimed]
        if refused:
            # The bus was lost or restored, and counts epochs that the tables have long seen: go above them.
            epochs = self._tables.epochs(refused)
            self._assignments.change(lambda before: before.outdo(self._node, epochs))
        return {slice_: [wanted[slice_], place, place] for slice_, place in claimed.items()}

    def _continue(self, slice_: int, place: int, expected: Mark | None) -> int:
        """Where the slice goes on. A gap is on the bus before the table moves on, so that nobody can miss it."""
        verdict = self._judge(slice_, place, expected)
        deadline_s = time.monotonic() + SHORTER_S_MAX
        while verdict.gap is not None and verdict.gap.kind == "shorter" and time.monotonic() < deadline_s:
            time.sleep(SHORTER_POLL_S)  # a broker that has just started may not have all of it yet
            verdict = self._judge(slice_, place, expected)
        gap = verdict.gap
        if gap is not None:
            self._bus.change(GAPS, lambda before: (before or Gaps()).with_(gap))
        if verdict.is_proven:
            self._unproven.pop(slice_, None)
        else:
            self._unproven[slice_] = verdict.start
        return verdict.start

    def _judge(self, slice_: int, place: int, expected: Mark | None) -> Verdict:
        span = self._log.spans([slice_])[slice_]
        found = mark_in_log(self._log, slice_, place, span)
        return judge(slice_, place, expected, span, found, node=self._node, now_s=time.time())

    def is_proven(self, slice_: int, after: int) -> bool:
        """Whether the log has the message at this place."""
        return sequence_of(after) > 0 and self._unproven.get(slice_) != after

    def _settle(self, held: Mapping[int, list[int]]) -> dict[int, int]:
        """This node's slices and their epochs, after giving away what has a taker."""
        if not self._renewed:
            # Whatever an earlier query of this node left behind is shut out by a higher epoch.
            assignment = self._assignments.change(lambda before: before.renew(self._node))
            self._renewed = True
        else:
            assignment = self._assignments.current()
        leaving = [slice_ for slice_, hold in assignment.owned_by(self._node).items() if hold.taker]
        if leaving:
            ready = self._committed(leaving, held)
            alive = self._assignments.alive()
            assignment = self._assignments.change(lambda before: before.release(self._node, alive, ready))
        assignment = self._await_promised(assignment)
        return {slice_: hold.epoch for slice_, hold in assignment.owned_by(self._node).items()}

    def _committed(self, leaving: list[int], held: Mapping[int, list[int]]) -> set[int]:
        """Those of which the tables have all that this query has read: the driver may hold back what it commits."""
        readings = self._tables.readings
        readings.refresh()
        return {s for s in leaving if s not in held or readings.position(s).offset >= held[s][2]}

    def _await_promised(self, assignment: Assignment) -> Assignment:
        """A slice that is on its way here comes between two batches of its giver, within half a batch as a rule.

        Waiting for it a little costs the other slices less than a whole batch later would cost this one.
        """
        deadline_s = time.monotonic() + PROMISED_S_MAX
        while assignment.promised_to(self._node) and time.monotonic() < deadline_s:
            time.sleep(PROMISED_POLL_S)
            assignment = self._assignments.current()
        return assignment

    def ends(self, places: Mapping[int, int]) -> dict[int, int]:
        """Where each of these slices ends now, given how far it was read; there, where its stream does not answer."""
        spans = self._spans(list(places))
        for slice_, place in places.items():
            if slice_ in spans and spans[slice_].last < sequence_of(place):
                raise SequenceGapError(
                    f"Slice {slice_} ends at {spans[slice_].last}, but was read up to {sequence_of(place)}: the log "
                    "has lost messages; the slice is taken up anew.",
                    where=f"slice {slice_}",
                    expected=sequence_of(place),
                    found=spans[slice_].last,
                )
        self.message_bytes = {slice_: span.message_bytes for slice_, span in spans.items()}
        self.last_ends = {
            s: position(incarnation_of(place), spans[s].last) if s in spans else place for s, place in places.items()
        }
        return self.last_ends

    def _spans(self, slices: list[int]) -> dict[int, Span]:
        """What those slices hold whose stream answers: one without a leader must not keep the others waiting."""
        now_s = time.monotonic()
        asked = [slice_ for slice_ in slices if now_s >= self._silent_until_s.get(slice_, 0.0)]
        try:
            return self._log.spans(asked)
        except BrokerUnavailableError:
            found: dict[int, Span] = {}
            for slice_ in asked:
                try:
                    found |= self._probe.spans([slice_])
                except BrokerUnavailableError:
                    self._silent_until_s[slice_] = now_s + SILENT_S
            if not found:
                self._silent_until_s.clear()
                raise  # it is not one stream, it is the brokers
            return found

    def ends_of_all(self) -> dict[int, int]:
        """The ends of all slices, each in the incarnation that the tables have."""
        readings = self._tables.readings
        readings.refresh()
        spans = self._log.spans(range(self.log_address.slices))
        return {s: position(incarnation_of(readings.position(s).offset), span.last) for s, span in spans.items()}
