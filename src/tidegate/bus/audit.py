"""The audit log: every decision with its reason, appended to a stream on the control bus, never changed.

Only decisions enter it, and a decision holds measured values, rules and actions: no credential has a way in.
"""

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT
from tidegate.bus.jetstream import API, STREAM_NOT_FOUND, ask, ask_all
from tidegate.bus.journals import config_of
from tidegate.model.decisions import Decision
from tidegate.model.errors import BrokerUnavailableError

_NOBODY = 503  # nobody listens where the record was sent


class AuditLog:
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus) -> None:
        self._wire = bus.wire

    def create(self) -> None:
        """Make the stream unless it is there. Whoever acts calls this; a reader need not."""
        ask(self._wire, f"STREAM.CREATE.{AUDIT.stream}", config_of(AUDIT))

    def append(self, decision: Decision) -> None:
        subject, record = f"{AUDIT.subject}.{decision.action.kind}", msgspec.json.encode(decision)
        answer = self._wire.request(subject, record)
        if answer.status == _NOBODY:
            # A bus that has lost its store has lost the stream too, and without it nothing could be decided any more.
            self.create()
            answer = self._wire.request(subject, record)
        if answer.status is not None or b'"error"' in answer.payload:
            said = answer.payload.decode(errors="replace") or f"status {answer.status}"
            raise BrokerUnavailableError(f"The audit log did not take a decision ({said}): see the control bus's log.")

    def last_sequence(self) -> int:
        """0 while there is no log: nothing has been decided yet."""
        tolerated = frozenset({STREAM_NOT_FOUND})
        reply = ask_all(self._wire, [(f"STREAM.INFO.{AUDIT.stream}", None)], tolerated=tolerated)[0]
        return int(reply["state"]["last_seq"]) if "state" in reply else 0

    def last(self, count: int) -> tuple[Decision, ...]:
        """The newest decisions, oldest first, without those that cannot be read."""
        end = self.last_sequence()
        asked = range(max(1, end - count + 1), end + 1)
        subject = f"{API}.DIRECT.GET.{AUDIT.stream}"
        frames = self._wire.requests([(subject, msgspec.json.encode({"seq": sequence})) for sequence in asked])
        found = (AUDIT.decode(frame.payload) for frame in frames if frame.status is None)
        return tuple(decision for decision in found if decision is not None)
