"""What the tables' rows hold: topic, fields that nobody knows, the day, and readings without an identity."""

import json

from sinking import DAY_S, NOW_S, Bench, reading


def test_readings_without_identity_are_stored_each_time_and_marked(bench: Bench) -> None:
    bench.write(0, 0, [b'{"value":1}', b'{"value":1}'])
    assert bench.table("readings")["identified"].to_pylist() == [False, False]
    assert sum(bench.table("means")["unidentified"].to_pylist()) == 2


def test_topic_and_unknown_fields_are_stored(bench: Bench) -> None:
    bench.write(0, 0, [b'{"boot":1,"seq":1,"value":7,"unit":"K","nested":{"a":[1]}}', reading(2)])
    rows = bench.table("readings").sort_by("seq").to_pylist()
    assert [row["topic"] for row in rows] == ["telemetry/device-0"] * 2
    assert json.loads(rows[0]["extra"]) == {"unit": "K", "nested": {"a": [1]}}
    assert rows[1]["extra"] is None


def test_what_a_device_writes_into_unknown_fields_does_not_fill_the_tables_log(bench: Bench) -> None:
    large = b'{"boot":1,"seq":%d,"value":1,"said":"' + b"x" * 60_000 + b'"}'
    bench.write(0, 0, [large % 1, reading(2)])
    bench.write(0, 2, [large % 1, large % 3])
    assert bench.sequences() == [1, 2, 3]
    for path in (bench.directory / "readings" / "_delta_log").glob("*.json"):
        assert path.stat().st_size < 8_000


def test_a_batch_around_midnight_goes_to_two_dates(bench: Bench) -> None:
    bench.arrived_s = NOW_S - NOW_S % DAY_S - 1
    first = bench.batch(0, 0, [reading(1)])
    bench.arrived_s += 2
    result = bench.task_of(first, bench.batch(0, 0, [reading(0), reading(2)]).slice(1))
    assert len(result.readings) == 2
    bench.sink.commit_results([result])
    assert sorted(str(day) for day in bench.table("readings")["date"].to_pylist()) == ["2025-10-08", "2025-10-09"]
