"""Partial means merge to the same windows however the readings were cut into batches."""

import random
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.pipeline.transforms.means import MEANS, closed, merge, partials
from tidegate.pipeline.transforms.parsing import READINGS

WINDOW_S = 10
reading = st.fixed_dictionaries(
    {
        "device": st.sampled_from(["d", "e", "f"]),
        "time_s": st.integers(0, 100),
        "value": st.floats(-1e9, 1e9, allow_nan=False).map(lambda v: round(v, 6)),
        "count": st.integers(1, 1000),
    }
)


def table(rows: list[dict]) -> pa.Table:
    """Readings as the parser makes them; a device belongs to one slice."""
    stamps = [datetime.fromtimestamp(row["time_s"], UTC) for row in rows]
    columns = {
        "slice": [ord(row["device"]) % 2 for row in rows],
        "offset": list(range(len(rows))),
        "device": [row["device"] for row in rows],
        "identified": [True] * len(rows),
        "boot": [1] * len(rows),
        "seq": list(range(len(rows))),
        "time": stamps,
        "value": [row["value"] for row in rows],
        "count": [row["count"] for row in rows],
        "min": [None] * len(rows),
        "max": [None] * len(rows),
        "first": [None] * len(rows),
        "last": [None] * len(rows),
        "arrived": [datetime.fromtimestamp(row.get("arrived_s", row["time_s"]), UTC) for row in rows],
        "topic": [f"telemetry/{row['device']}" for row in rows],
        "extra": [None] * len(rows),
    }
    return pa.table(columns, schema=READINGS)


@settings(max_examples=50)
@given(st.lists(reading, min_size=1, max_size=60), st.integers(0, 2**32))
def test_any_cut_into_batches_gives_the_same_windows(rows: list[dict], seed: int) -> None:
    whole = merge(partials(table(rows), WINDOW_S), WINDOW_S)
    chance = random.Random(seed)
    shuffled = chance.sample(rows, len(rows))
    cuts = sorted(chance.sample(range(1, len(rows)), min(len(rows) - 1, 4))) if len(rows) > 1 else []
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    pieces = pa.concat_tables([partials(table(part), WINDOW_S) for part in parts])
    assert merge(pieces, WINDOW_S).equals(whole)


@settings(max_examples=50)
@given(st.lists(reading, min_size=1, max_size=60))
def test_sums_are_the_integers_a_plain_loop_gives(rows: list[dict]) -> None:
    merged = merge(partials(table(rows), WINDOW_S), WINDOW_S).to_pylist()
    sums: dict[tuple[str, int], int] = {}
    for row in rows:
        key = (row["device"], row["time_s"] // WINDOW_S * WINDOW_S)
        sums[key] = sums.get(key, 0) + round(row["value"] * 1e6) * row["count"]
    assert {(r["device"], int(r["window_start"].timestamp())): int(r["sum_micro"]) for r in merged} == sums


def test_a_window_closes_by_the_watermark_of_its_own_slice() -> None:
    rows = [
        {"device": "d", "time_s": 1, "value": 2.0, "count": 1},
        {"device": "d", "time_s": 3, "value": 4.0, "count": 3},
        {"device": "d", "time_s": 12, "value": 1.0, "count": 1},
        {"device": "e", "time_s": 2, "value": 9.0, "count": 1},
    ]
    done = closed(partials(table(rows), WINDOW_S), WINDOW_S).to_pylist()
    assert [(row["device"], row["mean"]) for row in done] == [("d", 3.5)]
    assert closed(partials(table(rows), WINDOW_S), WINDOW_S, lateness_s=5).num_rows == 0


def test_one_clock_in_the_future_closes_no_window_of_others() -> None:
    rows = [
        {"device": "d", "time_s": 1, "value": 2.0, "count": 1},
        {"device": "f", "time_s": 90, "value": 4.0, "count": 1, "arrived_s": 2},
    ]
    assert closed(partials(table(rows), WINDOW_S), WINDOW_S).num_rows == 0
    rows.append({"device": "d", "time_s": 12, "value": 2.0, "count": 1})
    assert [row["device"] for row in closed(partials(table(rows), WINDOW_S), WINDOW_S).to_pylist()] == ["d"]


def test_no_readings_give_no_means() -> None:
    assert partials(table([]), WINDOW_S).num_rows == 0
    assert partials(table([]), WINDOW_S).schema == MEANS
