"""Requests to JetStream's API over a wire: JSON in, JSON out, an error reply becomes an exception."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

API = "$JS.API"
STREAM_NOT_FOUND = 10059
NO_MESSAGE_FOUND = 10037

Reply = dict[str, Any]


def ask_all(
    wire: Wire,
    asked: Sequence[tuple[str, Any]],
    *,
    tolerated: frozenset[int] = frozenset(),
    timeout_s: float | None = None,
) -> list[Reply]:
    """All requests in one round. Only a stream's leader answers about it, so an answer is never a follower's.

    Error replies whose code is tolerated come back as they are; any other raises.
    """
    frames = wire.requests(
        [(f"{API}.{verb}", b"" if body is None else json.dumps(body).encode()) for verb, body in asked],
        timeout_s=timeout_s,
    )
    replies = []
    for (verb, _), frame in zip(asked, frames, strict=True):
        if frame.status is not None:
            raise BrokerUnavailableError(f"The brokers' log does not answer {verb} (status {frame.status}): try again.")
        reply: Reply = json.loads(frame.payload)
        error = reply.get("error")
        if error is not None and error.get("err_code") not in tolerated:
            raise BrokerUnavailableError(
                f"The brokers' log refused {verb}: {error.get('description', error)} ({error.get('err_code', '?')})."
            )
        replies.append(reply)
    return replies


def ask(wire: Wire, verb: str, body: Any = None, *, timeout_s: float | None = None) -> Reply:
    return ask_all(wire, [(verb, body)], timeout_s=timeout_s)[0]


def seconds_of(stamp: str) -> float:
    """A server's time stamp (nanoseconds, UTC) as Unix time."""
    return datetime.fromisoformat(stamp).timestamp()
