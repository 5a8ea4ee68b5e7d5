"""Shared knowledge on the control bus: small documents with compare-and-set, and leases that run out by themselves.

The documents live in a JetStream key-value bucket; the bus's own clock ends a lease, so no two machines' clocks have
to agree.
"""

import json
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from tidegate.bus.wire import Frame, Wire
from tidegate.model.errors import BrokerUnavailableError

BUCKET = "tidegate"
_STREAM = f"KV_{BUCKET}"
_PREFIX = f"$KV.{BUCKET}."
_WRONG_SEQUENCE = {10071, 10164}
_STREAM_NOT_FOUND = 10059
_SEQUENCE = re.compile(rb"Nats-Sequence: (\d+)")


class Entry(NamedTuple):
    value: bytes
    revision: int


class Knowledge:
    """One reader and writer of the bucket. Belongs to one thread, like the connection below it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create_bucket(self) -> None:
        config = {
            "name": _STREAM,
            "subjects": [f"{_PREFIX}>"],
            "max_msgs_per_subject": 1,
            "storage": "file",
            "discard": "new",
            "allow_direct": True,
            "allow_rollup_hdrs": True,
            "allow_msg_ttl": True,
            "subject_delete_marker_ttl": 0,
        }
        answer = json.loads(self._wire.request(f"$JS.API.STREAM.CREATE.{_STREAM}", json.dumps(config).encode()).payload)
        if "error" in answer:
            raise BrokerUnavailableError(f"The control bus cannot keep knowledge: {answer['error']['description']}.")

    def get(self, key: str) -> Entry | None:
        frame = self._wire.request(f"$JS.API.DIRECT.GET.{_STREAM}.{_PREFIX}{key}")
        if frame.status == 404:
            return None
        found = _SEQUENCE.search(frame.headers)
        if frame.status is not None or found is None:
            raise BrokerUnavailableError(f"The control bus did not give {key}: {_problem(frame)}.")
        if b"KV-Operation:" in frame.headers:
            return None
        return Entry(frame.payload, int(found.group(1)))

    def put(self, key: str, value: bytes, *, revision: int | None = None, lease_s: float | None = None) -> int | None:
        """Store and return the new revision; None if ``revision`` (0: must not exist) is no longer the current one."""
        headers = {}
        if revision is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(revision)
        if lease_s is not None:
            headers["Nats-TTL"] = f"{math.ceil(lease_s)}s"
        frame = self._wire.request(f"{_PREFIX}{key}", value, headers=headers)
        if frame.status is not None:
            raise BrokerUnavailableError(f"The control bus did not take {key}: {_problem(frame)}.")
        answer = json.loads(frame.payload)
        if "error" not in answer:
            return int(answer["seq"])
        if answer["error"].get("err_code") in _WRONG_SEQUENCE:
            return None
        raise BrokerUnavailableError(f"The control bus did not take {key}: {answer['error']['description']}.")

    def delete(self, key: str) -> None:
        self._wire.request(f"$JS.API.STREAM.PURGE.{_STREAM}", json.dumps({"filter": f"{_PREFIX}{key}"}).encode())

    def keys(self, prefix: str) -> list[str]:
        wanted = json.dumps({"subjects_filter": f"{_PREFIX}{prefix}.>"}).encode()
        answer = json.loads(self._wire.request(f"$JS.API.STREAM.INFO.{_STREAM}", wanted).payload)
        if "error" in answer:
            raise BrokerUnavailableError(f"The control bus did not list {prefix}: {answer['error']['description']}.")
        subjects = answer["state"].get("subjects") or {}
        return sorted(subject.removeprefix(f"{_PREFIX}{prefix}.") for subject in subjects)

    def change(self, key: str, step: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Apply ``step`` until nobody interferes; a step that returns None leaves the document as it is."""
        while True:
            entry = self.get(key)
            wanted = step(entry.value if entry else None)
            if wanted is None or (entry and wanted == entry.value):
                return entry.value if entry else None
            if self.put(key, wanted, revision=entry.revision if entry else 0) is not None:
                return wanted


def _problem(frame: Frame) -> str:
    return frame.headers.decode(errors="replace").split("\r\n")[0].removeprefix("NATS/1.0 ") or "no answer"
