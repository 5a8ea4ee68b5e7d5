"""Which slices this node may read, and how far each goes now. Lives in the process that Spark plans batches in."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.brokers.port import Span
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.control.slicing.transfer import Assignment
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, SequenceGapError
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.sources.claiming import Claims
from tidegate.pipeline.sources.holes import Holes
from tidegate.pipeline.tables.tables import Tables

Offset = dict[str, list[int]]
PROMISED_S_MAX = 0.3
PROMISED_POLL_S = 0.02
# A stream that does not answer within this is left out, and asked again so much later.
PROBE_S = 1.0
SILENT_S = 10.0


class Planner:
    """The planner's connections, and the slices it may read."""

    def __init__(
        self,
        state: Path,
        node: str,
        doubted: Mapping[int, int] | None = None,
        tell: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """``doubted`` is a message per slice that a query before this one did not get; ``tell`` hears all that does
        not work though the query runs."""
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
        self._claims = Claims(node, self._log, self._bus, self._tables)
        self._holes = Holes(doubted or {}, self._log.next_sequence)
        self._tell = tell
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
            owned |= self._pass_holes(held, owned)
        except (BrokerUnavailableError, DamagedDocumentError):
            return held  # the node's keeper sees the same, and says so
        kept = {s: at for s, at in held.items() if owned.get(s) == at[0]}
        try:
            kept.update(self._claim({s: epoch for s, epoch in owned.items() if s not in kept}))
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._tell([str(error)])
        else:
            self._tell([*self._claims.sentences(), *self._holes.sentences()])
        return kept

    def _claim(self, wanted: dict[int, int]) -> dict[int, list[int]]:
        if not wanted:
            return {}
        self._tables.readings.refresh()  # before the log is asked: what is committed meanwhile must not be ahead of it
        spans = self._spans(list(wanted))
        wanted = {slice_: wanted[slice_] for slice_ in spans}
        claimed = self._claims.claim(wanted, spans)
        refused = self._claims.refused({s: epoch for s, epoch in wanted.items() if s not in claimed})
        if refused:
            # The bus was lost or restored, and counts epochs that the tables have long seen: go above them.
            epochs = self._tables.epochs(refused)
            self._assignments.change(lambda before: before.outdo(self._node, epochs))
        return {slice_: [wanted[slice_], place, place] for slice_, place in claimed.items()}

    def _pass_holes(self, held: Mapping[int, list[int]], owned: Mapping[int, int]) -> dict[int, int]:
        """New epochs for slices that have come to a hole which is certain: they are claimed behind it."""
        ended = {}
        for slice_, (epoch, _, place) in held.items():
            if owned.get(slice_) != epoch:
                continue
            found = self._holes.ask(slice_, place, time.monotonic())
            if found is not None and self._committed([slice_], held):
                self._claims.pass_hole(slice_, place, found)
                ended[slice_] = epoch
        if not ended:
            return {}
        assignment = self._assignments.change(lambda before: before.outdo(self._node, ended))
        return {s: own.epoch for s, own in assignment.owned_by(self._node).items() if s in ended}

    def is_proven(self, slice_: int, after: int) -> bool:
        """Whether the log has the message at this place."""
        return self._claims.is_proven(slice_, after)

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
        """How far each of these slices may be read, given how far it was; there, where its stream does not answer."""
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
        return {s: self._holes.before(s, places[s], end) for s, end in self.last_ends.items()}

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
