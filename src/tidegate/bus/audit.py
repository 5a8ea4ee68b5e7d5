"""The audit log: every decision with its reason, all that its round looked at, and what happened; appended, never
changed.

Only decisions and what was measured enter it: no credential has a way in. It keeps the newest, as many as fit.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT, EVENTS, ROUNDS, Journal
from tidegate.bus.jetstream import API
from tidegate.bus.journals import JournalReader, Record, appended, to_append
from tidegate.bus.key_value import Answer
from tidegate.loop.rounds import Round
from tidegate.model import notices
from tidegate.model.actions import kind_of
from tidegate.model.decisions import Decision
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.notices import Notice

T = TypeVar("T")
_PAGE = 256
DAMAGED_MAX = 1_000  # so many records that cannot be read are passed over: a leader has to read on within its lease
_NOBODY = 503  # nobody listens where the record was sent


class Newest(NamedTuple, Generic[T]):
    """Records, oldest first; ``damaged``: the numbers of those between and behind them that cannot be read."""

    records: tuple[T, ...]
    damaged: tuple[int, ...]


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
        """The newest decisions that can be read, oldest first."""
        return self.newest(count).records

    def newest(self, count: int) -> Newest[Decision]:
        return _newest(self._decisions, count)

    def after(self, sequence: int) -> tuple[Decision, ...]:
        """The decisions behind that record, oldest first."""
        found = self._decisions.read(range(sequence + 1, self.last_sequence() + 1))
        return tuple(record.value for record in found if record.value is not None)

    def find(self, plan: str) -> Newest[Decision]:
        """The newest decision with that number; none where it is not kept (any more), or is damaged."""
        damaged = []
        for record in _backwards(self._decisions, _PAGE):
            if record.value is None:
                damaged.append(record.sequence)
            elif record.value.plan == plan:
                return Newest((record.value,), ())
        return Newest((), tuple(reversed(damaged)))

    def since_s(self) -> float | None:
        """From when on it is complete: when its oldest decision was written; None while there is none."""
        ends = self._decisions.ends()
        found = self._decisions.read(range(ends.first, min(ends.first, ends.last) + 1))
        return found[0].at_s if found else None

    def last_notices(self, count: int) -> tuple[Notice, ...]:
        """The newest events, plans and changes of range, oldest first."""
        return _newest(self._events, count).records

    def round(self, name: str) -> Round | None:
        """What the decisions of a round looked at; None where that is not kept any more."""
        asked = msgspec.json.encode({"last_by_subj": f"{ROUNDS.subject}.{name}"})
        frame = self._wire.request(f"{API}.DIRECT.GET.{ROUNDS.stream}", asked)
        if frame.status is not None:
            return None
        played = ROUNDS.decode(frame.payload)
        if played is None:
            raise DamagedDocumentError(
                f"The record of round {name} on the control bus is damaged: its decisions cannot be made again.",
                where=f"{ROUNDS.subject}.{name}",
                expected=Round,
                found=frame.payload,
            )
        return played


def _newest(journal: JournalReader[T], count: int) -> Newest[T]:
    """As many as asked for, as long as there are that many: what cannot be read does not take their place."""
    found: list[T] = []
    damaged: list[int] = []
    for record in _backwards(journal, count) if count else ():
        if record.value is None:
            damaged.append(record.sequence)
        else:
            found.append(record.value)
        if len(found) == count or len(damaged) == DAMAGED_MAX:
            break
    return Newest(tuple(reversed(found)), tuple(reversed(damaged)))


def _backwards(journal: JournalReader[T], page: int) -> Iterator[Record[T]]:
    """From the newest on; ``page``: how many are probably looked at."""
    ends = journal.ends()
    upto = ends.last
    while upto >= ends.first:
        since = max(ends.first, upto - page + 1)
        yield from reversed(journal.read(range(since, upto + 1)))
        upto, page = since - 1, _PAGE
