"""The bus's key-value bucket as requests and answers, without IO: what is asked, and what an answer means.

The bucket is a JetStream stream with one message per key; the bus's own clock ends a lease, so no two machines' clocks
have to agree. Two transports carry these requests: the blocking ``client`` and the asyncio ``watching``.
"""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from tidegate.model.errors import BrokerUnavailableError

BUCKET = "tidegate"
STREAM = f"KV_{BUCKET}"
_PREFIX = f"$KV.{BUCKET}."
_WRONG_SEQUENCE = frozenset({10071, 10164})
_NOT_FOUND = "404"


class Entry(NamedTuple):
    value: bytes
    revision: int
    written_s: float  # when the bus stored it, by the bus's own clock (Unix time)


class Request(NamedTuple):
    subject: str
    payload: bytes = b""
    headers: dict[str, str] | None = None


class Answer(NamedTuple):
    """``headers`` has what the server added, and its status under ``Status`` where it said one."""

    headers: Mapping[str, str]
    payload: bytes


def subject_of(key: str) -> str:
    """Every change of a document is a message here."""
    return f"{_PREFIX}{key}"


def to_create() -> Request:
    config = {
        "name": STREAM,
        "subjects": [f"{_PREFIX}>"],
        "max_msgs_per_subject": 1,
        "storage": "file",
        "discard": "new",
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 0,
    }
    return Request(f"$JS.API.STREAM.CREATE.{STREAM}", json.dumps(config).encode())


def created(answer: Answer) -> None:
    _reply(answer, "cannot keep", "documents")


def to_get(key: str) -> Request:
    return Request(f"$JS.API.DIRECT.GET.{STREAM}.{_PREFIX}{key}")


def got(key: str, answer: Answer) -> Entry | None:
    """The entry, or None where there is none, or none any more."""
    headers = answer.headers
    if headers.get("Status") == _NOT_FOUND or "KV-Operation" in headers:
        return None
    if "Status" in headers or not {"Nats-Sequence", "Nats-Time-Stamp"} <= headers.keys():
        _refused("did not give", key, headers.get("Description") or headers.get("Status") or "no value")
    written_s = datetime.fromisoformat(headers["Nats-Time-Stamp"]).timestamp()
    return Entry(answer.payload, int(headers["Nats-Sequence"]), written_s)


def to_get_next(prefix: str, revision: int) -> Request:
    """Of the keys below a prefix, the one that was put first behind a revision."""
    wanted = {"seq": revision + 1, "next_by_subj": f"{_PREFIX}{prefix}.>"}
    return Request(f"$JS.API.DIRECT.GET.{STREAM}", json.dumps(wanted).encode())


def got_next(prefix: str, answer: Answer) -> tuple[str, Entry] | None:
    """Its name and what is stored; None where nothing was put since. What was deleted is not told of."""
    entry = got(prefix, answer)
    if entry is None:
        return None
    return answer.headers["Nats-Subject"].removeprefix(f"{_PREFIX}{prefix}."), entry


def to_put(key: str, value: bytes, *, revision: int | None, lease_s: float | None) -> Request:
    """``revision`` is the one that must be the current one (0: there must be none); None overwrites."""
    headers = {}
    if revision is not None:
        headers["Nats-Expected-Last-Subject-Sequence"] = str(revision)
    if lease_s is not None:
        headers["Nats-TTL"] = f"{math.ceil(lease_s)}s"
    return Request(subject_of(key), value, headers or None)


def put(key: str, answer: Answer) -> int | None:
    """The new revision; None if the expected one is no longer the current one."""
    reply = _reply(answer, "did not take", key, tolerated=_WRONG_SEQUENCE)
    return int(reply["seq"]) if "error" not in reply else None


def to_delete(key: str, revision: int | None = None) -> Request:
    """``revision`` spares a value that was put behind it."""
    wanted: dict[str, Any] = {"filter": f"{_PREFIX}{key}"}
    if revision is not None:
        wanted["seq"] = revision + 1
    return Request(f"$JS.API.STREAM.PURGE.{STREAM}", json.dumps(wanted).encode())


def deleted(key: str, answer: Answer) -> None:
    _reply(answer, "did not delete", key)


def to_list(prefix: str = "") -> Request:
    """Every key, or those below a prefix."""
    below = f"{_PREFIX}{prefix}.>" if prefix else f"{_PREFIX}>"
    return Request(f"$JS.API.STREAM.INFO.{STREAM}", json.dumps({"subjects_filter": below}).encode())


def listed(answer: Answer, prefix: str = "") -> list[str]:
    reply = _reply(answer, "did not list", prefix or "its documents")
    begin = f"{_PREFIX}{prefix}." if prefix else _PREFIX
    return sorted(subject.removeprefix(begin) for subject in reply["state"].get("subjects") or {})


def _reply(answer: Answer, what: str, key: str, tolerated: frozenset[int] = frozenset()) -> dict[str, Any]:
    """The answer's JSON. A status in its place (nobody listens, say) raises, and so does any error not tolerated."""
    if "Status" in answer.headers:
        _refused(what, key, answer.headers.get("Description") or answer.headers["Status"])
    reply: dict[str, Any] = json.loads(answer.payload)
    error = reply.get("error")
    if error is not None and error.get("err_code") not in tolerated:
        _refused(what, key, error["description"])
    return reply


def _refused(what: str, key: str, why: str) -> NoReturn:
    raise BrokerUnavailableError(f"The control bus {what} {key}: {why}.", where=key, found=why)
