"""Payloads that are readings, and payloads that are not, each with the reason a person will read."""

import pyarrow as pa
import pytest

from tidegate.pipeline.transforms.parsing import parse

ARRIVED_US = 1_760_000_000_000_000


def batch(*payloads: bytes, topic: str = "telemetry/pump-7") -> pa.RecordBatch:
    count = len(payloads)
    columns = [
        pa.array([3] * count, pa.int32()),
        pa.array([1] * count, pa.int32()),
        pa.array(range(1, count + 1), pa.int64()),
        pa.array([topic] * count, pa.string()),
        pa.array([ARRIVED_US] * count, pa.timestamp("us", tz="UTC")),
        pa.array(payloads, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["slice", "epoch", "offset", "topic", "arrived", "payload"])


def test_a_plain_reading() -> None:
    parsed = parse(batch(b'{"boot":3,"seq":9,"time":1760000000.25,"value":21.5}'))
    row = parsed.readings.to_pylist()[0]
    assert (row["device"], row["boot"], row["seq"], row["value"], row["count"]) == ("pump-7", 3, 9, 21.5, 1)
    assert row["identified"] is True
    assert row["time"].timestamp() == 1_760_000_000.25
    assert parsed.rejected.num_rows == 0


def test_a_reading_that_stands_for_several() -> None:
    text = b'{"boot":1,"seq":2,"time":10,"value":2,"count":4,"min":1,"max":3,"first":5,"last":10}'
    row = parse(batch(text)).readings.to_pylist()[0]
    assert (row["count"], row["min"], row["max"]) == (4, 1.0, 3.0)
    assert (row["first"].timestamp(), row["last"].timestamp()) == (5, 10)


def test_without_identity_and_time_a_reading_is_kept_and_marked() -> None:
    row = parse(batch(b'{"value":1}')).readings.to_pylist()[0]
    assert row["identified"] is False
    assert row["boot"] is None
    assert row["time"].timestamp() * 1e6 == ARRIVED_US


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not JSON"),
        (b"hot", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"value":NaN}', "not JSON"),
        (b"[" * 50_000, "not a reading: Expected `object`, got `array`"),
        (b"[1,2]", "not a reading: Expected `object`, got `array`"),
        (b"{}", "not a reading: Object missing required field `value`"),
        (b'{"value":"21"}', "not a reading: Expected `float`, got `str` - at `$.value`"),
        (b'{"value":1e300}', "not a reading: Expected `float` <= "),
        (b'{"value":1,"boot":-1,"seq":0}', "not a reading: Expected `int` >= 0 - at `$.boot`"),
        (b'{"value":1,"boot":1.5,"seq":0}', "at `$.boot`"),
        (b'{"value":1,"boot":1}', "boot and seq come together or not at all"),
        (b'{"value":9,"count":2,"min":1,"max":3}', "value is outside min and max"),
        (b'{"value":2,"count":2,"first":9,"last":3}', "first is later than last"),
        (b'{"value":2,"time":1e18}', "at `$.time`"),
        (b'{"value":1,"pad":"' + b"x" * 70_000 + b'"}', "too large: the payload has 70020 bytes, more than 65536"),
    ],
)
def test_what_is_no_reading_is_kept_aside_with_the_reason(payload: bytes, reason: str) -> None:
    parsed = parse(batch(payload, b'{"value":1}'))
    assert parsed.readings.num_rows == 1
    row = parsed.rejected.to_pylist()[0]
    assert reason in row["reason"]
    assert row["payload"] == payload[:1024]
    assert row["payload_bytes"] == len(payload)
    assert row["topic"] == "telemetry/pump-7"


def test_order_and_offsets_survive_rejects_in_between() -> None:
    parsed = parse(batch(b'{"value":1}', b"x", b'{"value":3}', b"y"))
    assert parsed.readings["offset"].to_pylist() == [1, 3]
    assert parsed.rejected["offset"].to_pylist() == [2, 4]


def test_a_topic_without_a_device_is_rejected() -> None:
    assert parse(batch(b'{"value":1}', topic="telemetry")).rejected["reason"].to_pylist() == [
        "the topic names no device"
    ]


@pytest.mark.parametrize(
    ("unknown", "extra"),
    [
        (b'"unit":"\xb0C"', '{"unit":"\ufffdC"}'),
        (b'"\xff":1', '{"\ufffd":1}'),
        (b'"x":{"\xed\xa0\x80":[1]}', '{"x":{"\ufffd\ufffd\ufffd":[1]}}'),
        (b'"x":"cut \xe2"', '{"x":"cut \ufffd"}'),
    ],
)
def test_unknown_fields_that_are_no_utf_8_cost_the_reading_nothing(unknown: bytes, extra: str) -> None:
    for payload in (b'{"boot":1,"seq":2,"value":3,' + unknown + b"}", b"{" + unknown + b',"boot":1,"seq":2,"value":3}'):
        parsed = parse(batch(payload, b'{"value":4}'))
        row, other = parsed.readings.to_pylist()
        assert (row["boot"], row["seq"], row["value"], row["extra"]) == (1, 2, 3.0, extra)
        assert (other["value"], other["extra"]) == (4.0, None)
