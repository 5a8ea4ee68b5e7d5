"""Payloads to readings. What cannot be one goes to the side table with the reason; nothing is dropped."""

from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from tidegate.model.readings import PAYLOAD_BYTES_MAX, TELEMETRY, KnownFieldsOnly, Reading

KEPT_PAYLOAD_BYTES = 1024
_DECODE = msgspec.json.Decoder(Reading).decode
_STRICT = msgspec.json.Decoder(KnownFieldsOnly).decode
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_STAMP = pa.timestamp("us", tz="UTC")

READINGS = pa.schema(
    [
        pa.field("slice", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        # False: the payload named no boot and seq, so a retransmission is stored again.
        pa.field("identified", pa.bool_(), nullable=False),
        pa.field("boot", pa.int64()),
        pa.field("seq", pa.int64()),
        pa.field("time", _STAMP, nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("min", pa.float64()),
        pa.field("max", pa.float64()),
        pa.field("first", _STAMP),
        pa.field("last", _STAMP),
        pa.field("arrived", _STAMP, nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        # What the payload said beyond the columns above, as a JSON object.
        pa.field("extra", pa.string()),
    ]
)
REJECTED = pa.schema(
    [
        pa.field("slice", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("payload_bytes", pa.int64(), nullable=False),
        pa.field("arrived", _STAMP, nullable=False),
    ]
)


class Parsed(NamedTuple):
    readings: pa.RecordBatch
    rejected: pa.RecordBatch


def parse(batch: pa.RecordBatch) -> Parsed:
    """Split a batch of the source into readings and rejects."""
    payloads = batch.column("payload").to_pylist()
    topics = batch.column("topic").to_pylist()
    good: list[int] = []
    rows: list[Reading] = []
    extras: dict[int, str] = {}
    bad: list[tuple[int, str]] = []
    for index, payload in enumerate(payloads):
        try:
            reading = _decoded(payload, index, extras)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            bad.append((index, _reason(payload, error)))
            continue
        problem = reading.contradiction()
        if problem is None and len(payload) <= PAYLOAD_BYTES_MAX:
            good.append(index)
            rows.append(reading)
        else:
            bad.append((index, problem or _reason(payload, None)))
    devices, nameless = _devices(topics, good)
    if nameless:
        bad.extend((good[place], "the topic names no device") for place in nameless)
        keep = [place for place in range(len(good)) if place not in nameless]
        good = [good[place] for place in keep]
        rows = [rows[place] for place in keep]
        devices = [devices[place] for place in keep]
    kept = batch if not bad else batch.take(pa.array(good, pa.int64()))
    extra = [extras.get(index) for index in good] if extras else None
    return Parsed(_readings(kept, devices, rows, extra), _rejects(batch, topics, payloads, sorted(bad)))


def _decoded(payload: bytes, index: int, extras: dict[int, str]) -> Reading:
    """Most payloads have no unknown field, so only one that the strict decoder refuses is looked through."""
    try:
        return _STRICT(payload)
    except (msgspec.ValidationError, UnicodeDecodeError):
        reading = _DECODE(payload)
    try:
        extra = _unknown(payload)
    except UnicodeDecodeError:  # such as a unit in Latin-1: no decoder looks into what it skips
        extra = _unknown(payload.decode(errors="replace").encode())
    if extra is not None:
        extras[index] = extra
    return reading


def _unknown(payload: bytes) -> str | None:
    unknown = {name: value for name, value in _FIELDS(payload).items() if name not in Reading.__struct_fields__}
    return msgspec.json.encode(unknown).decode() if unknown else None


def _reason(payload: bytes, error: Exception | None) -> str:
    if len(payload) > PAYLOAD_BYTES_MAX:
        return f"too large: the payload has {len(payload)} bytes, more than {PAYLOAD_BYTES_MAX}"
    if isinstance(error, msgspec.ValidationError):
        return f"not a reading: {error}"
    return f"not JSON: {error}"


def _devices(topics: list[str], good: list[int]) -> tuple[list[str], set[int]]:
    """The device of each good row, and the places of rows whose topic has none."""
    known: dict[str, str] = {}
    devices = []
    nameless = set()
    for place, index in enumerate(good):
        topic = topics[index]
        device = known.get(topic)
        if device is None:
            levels = topic.split("/")
            device = levels[1] if len(levels) > 1 and levels[0] == TELEMETRY else ""
            known[topic] = device
        if not device:
            nameless.add(place)
        devices.append(device)
    return devices, nameless


def _micros(seconds: np.ndarray) -> np.ndarray:
    return np.rint(seconds * 1e6).astype(np.int64)


def _stamps(seconds: list[float | None]) -> pa.Array:
    return pa.array([None if s is None else round(s * 1e6) for s in seconds], pa.int64()).cast(_STAMP)


def _readings(
    batch: pa.RecordBatch, devices: list[str], rows: list[Reading], extras: list[str | None] | None
) -> pa.RecordBatch:
    boots = pa.array([row.boot for row in rows], pa.int64())
    times = np.array([np.nan if row.time is None else row.time for row in rows], np.float64)
    arrived = batch.column("arrived")
    unknown = np.isnan(times)
    micros = _micros(np.where(unknown, 0.0, times))
    if unknown.any():
        micros = np.where(unknown, arrived.cast(pa.int64()).to_numpy(zero_copy_only=False), micros)
    counts = [row.count for row in rows]
    several = bool(counts) and max(counts) > 1
    extents = [
        pa.array([row.min if row.count > 1 else None for row in rows], pa.float64()),
        pa.array([row.max if row.count > 1 else None for row in rows], pa.float64()),
        _stamps([row.first if row.count > 1 else None for row in rows]),
        _stamps([row.last if row.count > 1 else None for row in rows]),
    ]
    if not several:
        extents = [pa.nulls(len(rows), READINGS.field(name).type) for name in ("min", "max", "first", "last")]
    columns = [
        batch.column("slice"),
        batch.column("offset"),
        pa.array(devices, pa.string()),
        boots.is_valid(),
        boots,
        pa.array([row.seq for row in rows], pa.int64()),
        pa.array(micros).cast(_STAMP),
        pa.array([row.value for row in rows], pa.float64()),
        pa.array(counts, pa.int64()),
        *extents,
        arrived,
        batch.column("topic"),
        pa.nulls(len(rows), pa.string()) if extras is None else pa.array(extras, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READINGS)


def _rejects(
    batch: pa.RecordBatch, topics: list[str], payloads: list[bytes], bad: list[tuple[int, str]]
) -> pa.RecordBatch:
    indices = [index for index, _ in bad]
    taken = batch.take(pa.array(indices, pa.int64()))
    columns = [
        taken.column("slice"),
        taken.column("offset"),
        pa.array([topics[index] for index in indices], pa.string()),
        pa.array([reason for _, reason in bad], pa.string()),
        pa.array([payloads[index][:KEPT_PAYLOAD_BYTES] for index in indices], pa.binary()),
        pa.array([len(payloads[index]) for index in indices], pa.int64()),
        taken.column("arrived"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REJECTED)
