"""The same identity twice: the same reading sent again, or another one under a used name.

A device whose boot counter was wiped, or two devices of one name, number their readings with identities that are taken.
What they send was acknowledged, so it is kept: in ``rejected``, with both digests.
"""

import hashlib
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipeline.transforms.parsing import KEPT_PAYLOAD_BYTES, REJECTED

USED_TWICE = "identity used twice"
TOO_OLD = "too old"
_SAID = ["value", "count", "min", "max", "first", "last", "extra"]


class Conflicts(NamedTuple):
    """Readings, and for each the stored one that has its identity."""

    rows: pa.Table
    stored: pa.Table


def conflicting(rows: pa.Table, stored: pa.Table) -> Conflicts:
    """Those whose payload differs from what is stored under their identity; the others are repeats."""
    same = np.ones(rows.num_rows, bool)
    for name in _SAID:
        same &= _equal(rows[name], stored[name])
    # A payload without a time has that of its arrival, which a repeat cannot have.
    timeless = _equal(rows["time"], rows["arrived"]) & _equal(stored["time"], stored["arrived"])
    same &= timeless | _equal(rows["time"], stored["time"])
    differs = pa.array(~same)
    return Conflicts(rows.filter(differs), stored.filter(differs))


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """Element by element; nothing equals nothing."""
    equal = pc.if_else(
        pc.or_(left.is_null(), right.is_null()),
        pc.and_(left.is_null(), right.is_null()),
        pc.fill_null(pc.equal(left, right), False),
    )
    found: np.ndarray = equal.to_numpy(zero_copy_only=False) if isinstance(equal, pa.Array) else equal.to_numpy()
    return found.astype(bool)


def rejects_of(conflicts: Conflicts) -> pa.Table:
    reasons = []
    for row, stored in zip(conflicts.rows.to_pylist(), conflicts.stored.to_pylist(), strict=True):
        digests = f"stored digest {_digest(stored)}, this one {_digest(row)}"
        reasons.append(f"{USED_TWICE}: boot {row['boot']}, seq {row['seq']}, {digests}")
    return rejected(conflicts.rows, reasons)


def too_old(rows: pa.Table, horizon_days: int) -> pa.Table:
    reasons = [
        f"{TOO_OLD}: taken {row['time']:%Y-%m-%d %H:%M:%S} UTC, and identities are remembered for {horizon_days} days"
        for row in rows.select(["time"]).to_pylist()
    ]
    return rejected(rows, reasons)


def rejected(rows: pa.Table, reasons: list[str]) -> pa.Table:
    """Readings as rows of the table ``rejected``; the payload is what was understood of it."""
    payloads = [_payload(row) for row in rows.to_pylist()]
    columns = [
        rows["slice"],
        rows["offset"],
        rows["topic"],
        pa.array(reasons, pa.string()),
        pa.array([payload[:KEPT_PAYLOAD_BYTES] for payload in payloads], pa.binary()),
        pa.array([len(payload) for payload in payloads], pa.int64()),
        rows["arrived"],
    ]
    return pa.table(columns, schema=REJECTED)


def _payload(row: dict[str, object]) -> bytes:
    """The reading as JSON, its fields in their fixed order."""
    said: dict[str, object] = {name: row[name] for name in ("boot", "seq")}
    if row["time"] != row["arrived"]:
        said["time"] = _seconds(row["time"])
    for name in ("value", "count", "min", "max"):
        said[name] = row[name]
    for name in ("first", "last"):
        said[name] = _seconds(row[name])
    if said["count"] == 1:
        del said["count"]
    if isinstance(row["extra"], str):
        said |= msgspec.json.decode(row["extra"], type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in said.items() if value is not None})


def _seconds(stamp: object) -> float | None:
    return stamp.timestamp() if hasattr(stamp, "timestamp") else None


def _digest(row: dict[str, object]) -> str:
    return hashlib.blake2b(_payload(row), digest_size=8).hexdigest()
