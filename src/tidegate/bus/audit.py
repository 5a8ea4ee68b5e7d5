"""The audit log: every decision with its reason, all that its round looked at, and what happened; appended, never
changed.

Only decisions and what was measured enter it: no credential has a way in. It keeps the newest, as many as fit.
"""

import hashlib
from typing import Any, TypeVar

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT, EVENTS, ROUNDS, Journal
from tidegate.bus.jetstream import API
from tidegate.bus.journals import JournalReader, appended, to_append
from tidegate.bus.key_value import Answer
from tidegate.loop.rounds import Round
from tidegate.model import notices
from tidegate.model.actions import kind_of
from tidegate.model.decisions import Decision
from tidegate.model.notices import Notice

T = TypeVar("T")
_PAGE = 256
_NOBODY = 503  # nobody listens where the record was sent


class AuditLog:
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus) -> None:
        self._wire = bus.wire
        self._decisions = JournalReader(bus, AUDIT)
        self._rounds = JournalReader(bus, ROUNDS)
        self._events = JournalReader(bus, EVENTS)

    def create(self) -> list[str]:
        """Make the streams unless they are there; what is not as it shall be of them. Whoever acts calls this; a
        reader need not."""
        said = (self._decisions.create(), self._rounds.create(), self._events.create())
        return [sentence for sentence in said if sentence is not None]

    def append(self, decision: Decision, *, once: str) -> None:
        """``once``: what has been appended under this name a moment ago is not appended again."""
        self._append(AUDIT, decision, kind_of(decision.action), once)

    def append_round(self, name: str, played: Round, *, once: str) -> None:
        self._append(ROUNDS, played, name, once)

    def append_notice(self, notice: Notice) -> None:
        once = hashlib.blake2b(msgspec.json.encode(notice), digest_size=16).hexdigest()
        self._append(EVENTS, notice, notices.kind_of(notice), once)

    def _append(self, journal: Journal[Any], record: msgspec.Struct, name: str, once: str) -> None:
        request = to_append(journal, record, name, once)
        frame = self._wire.request(request.subject, request.payload, headers=request.headers)
        if frame.status == _NOBODY:
            # A bus that has lost its store has lost the stream too, and without it nothing could be decided any more.
            self.create()
            frame = self._wire.request(request.subject, request.payload, headers=request.headers)
        appended(journal, Answer(frame.fields(), frame.payload))

    def last_sequence(self) -> int:
        """0 while there is no log: nothing has been decided yet."""
        return self._decisions.ends().last

    def last(self, count: int) -> tuple[Decision, ...]:
        """The newest decisions, oldest first, without those that cannot be read."""
        return _last(self._decisions, count)

    def find(self, plan: str) -> Decision | None:
        """The newest decision with that number; None where it is not kept (any more)."""
        ends = self._decisions.ends()
        for last in range(ends.last, ends.first - 1, -_PAGE):
            found = self._decisions.read(range(max(ends.first, last - _PAGE + 1), last + 1))
            for record in reversed(found):
                if record.value is not None and record.value.plan == plan:
                    return record.value
        return None

    def since_s(self) -> float | None:
        """From when on it is complete: when its oldest decision was written; None while there is none."""
        ends = self._decisions.ends()
        found = self._decisions.read(range(ends.first, min(ends.first, ends.last) + 1))
        return found[0].at_s if found else None

    def last_notices(self, count: int) -> tuple[Notice, ...]:
        """The newest events, plans and changes of range, oldest first."""
        return _last(self._events, count)

    def round(self, name: str) -> Round | None:
        """What the decisions of a round looked at; None where that is not kept any more."""
        asked = msgspec.json.encode({"last_by_subj": f"{ROUNDS.subject}.{name}"})
        frame = self._wire.request(f"{API}.DIRECT.GET.{ROUNDS.stream}", asked)
        return ROUNDS.decode(frame.payload) if frame.status is None else None


def _last(journal: JournalReader[T], count: int) -> tuple[T, ...]:
    end = journal.ends().last
    found = journal.read(range(max(1, end - count + 1), end + 1))
    return tuple(record.value for record in found if record.value is not None)
