"""Journals: streams on the control bus to which records are appended and never changed, within the bounds they declare.

How a journal is made and appended to is said without IO, as for documents (``key_value``); ``JournalReader`` reads one
for a blocking program, from any place on. What lies before the oldest record is gone, and the reader can tell.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import Journal
from tidegate.bus.jetstream import API, STREAM_NOT_FOUND, ask_all, seconds_of
from tidegate.bus.key_value import Answer, Request
from tidegate.model.errors import BrokerUnavailableError, TooLargeError

T = TypeVar("T")
_NANOSECONDS = 1_000_000_000
# Within this time a record that was stored although the answer never came is not stored again.
_REPEATED_S = 600
_IN_USE = 10058  # a stream of that name exists, with other bounds
_TOO_LARGE = 10054


class Record(NamedTuple, Generic[T]):
    """``at_s`` is when the bus took it, by the bus's clock. ``value`` is None where it cannot be read."""

    sequence: int
    at_s: float
    value: T | None


class Ends(NamedTuple):
    """``first`` is behind ``last`` where all records are gone. ``created`` tells one journal from a later one of the
    same name; it is empty of one that does not exist. ``now_s`` is what time the bus says it is."""

    first: int
    last: int
    created: str = ""
    now_s: float = 0.0


def config_of(journal: Journal[Any]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "name": journal.stream,
        "subjects": [f"{journal.subject}.>"],
        "storage": "file",
        "retention": "limits",
        "max_msgs": journal.records_max,
        "discard": "old",
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        "duplicate_window": _REPEATED_S * _NANOSECONDS,
    }
    if journal.age_s_max is not None:
        config |= {"max_age": journal.age_s_max * _NANOSECONDS}
    if journal.bytes_max is not None:
        config |= {"max_bytes": journal.bytes_max, "compression": "s2"}
    return config


def to_create(journal: Journal[Any]) -> Request:
    return Request(f"{API}.STREAM.CREATE.{journal.stream}", msgspec.json.encode(config_of(journal)))


def created(journal: Journal[Any], answer: Answer) -> bool:
    """Whether it is as it shall be. One that another version made has other bounds: they are to be updated."""
    _check(journal, answer, tolerated=frozenset({_IN_USE}))
    return "error" not in msgspec.json.decode(answer.payload)


def to_update(journal: Journal[Any]) -> Request:
    return Request(f"{API}.STREAM.UPDATE.{journal.stream}", msgspec.json.encode(config_of(journal)))


def updated(journal: Journal[Any], answer: Answer) -> str | None:
    """Why it keeps the bounds that another version gave it; None where it has the new ones. It serves as well."""
    error = {} if "Status" in answer.headers else msgspec.json.decode(answer.payload).get("error")
    if error is None:
        return None
    why = error.get("description") or answer.headers.get("Description") or answer.headers.get("Status")
    return (
        f"The journal {journal.stream} on the control bus keeps the bounds that another version gave it ({why}): look "
        "at how much room the bus has."
    )


def to_append(journal: Journal[T], record: T, name: str, identity: str | None = None) -> Request:
    """``identity`` keeps a record from being stored twice where its writer has to try again."""
    headers = None if identity is None else {"Nats-Msg-Id": identity}
    return Request(f"{journal.subject}.{name}", msgspec.json.encode(record), headers)


def appended(journal: Journal[Any], answer: Answer) -> None:
    _check(journal, answer)


def _check(journal: Journal[Any], answer: Answer, tolerated: frozenset[int] = frozenset()) -> None:
    said = answer.headers.get("Description") or answer.headers.get("Status", "")
    refusal: type[BrokerUnavailableError] = BrokerUnavailableError
    if not said:
        error: Mapping[str, Any] = msgspec.json.decode(answer.payload).get("error") or {}
        if not error or error.get("err_code") in tolerated:
            return
        said = str(error.get("description", error))
        refusal = TooLargeError if error.get("err_code") == _TOO_LARGE else refusal
    raise refusal(f"The journal {journal.stream} on the control bus did not take a record: {said}.")


class JournalReader(Generic[T]):
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus, journal: Journal[T]) -> None:
        self._wire = bus.wire
        self._journal = journal

    def create(self) -> str | None:
        """Make it unless it is there; why it is not as it shall be, where it is not."""
        if created(self._journal, self._ask(to_create(self._journal))):
            return None
        return updated(self._journal, self._ask(to_update(self._journal)))

    def _ask(self, request: Request) -> Answer:
        frame = self._wire.request(request.subject, request.payload)
        return Answer(frame.fields(), frame.payload)

    def ends(self) -> Ends:
        stream = self._journal.stream
        reply = ask_all(self._wire, [(f"STREAM.INFO.{stream}", None)], tolerated=frozenset({STREAM_NOT_FOUND}))[0]
        if "state" not in reply:
            return Ends(1, 0)
        state = reply["state"]
        first = max(1, int(state["first_seq"]))  # 0 where there was never a record
        return Ends(first, int(state["last_seq"]), reply["created"], seconds_of(reply["ts"]))

    def read(self, sequences: Sequence[int]) -> list[Record[T]]:
        """Those of the records that are still there."""
        subject = f"{API}.DIRECT.GET.{self._journal.stream}"
        frames = self._wire.requests([(subject, msgspec.json.encode({"seq": sequence})) for sequence in sequences])
        found = []
        for frame in frames:
            fields = frame.fields()
            if "Nats-Sequence" in fields:
                at_s = seconds_of(fields["Nats-Time-Stamp"])
                found.append(Record(int(fields["Nats-Sequence"]), at_s, self._journal.decode(frame.payload)))
        return found
