"""However samples are grouped into aggregates, nothing of them is lost."""

import itertools
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.devices.aggregation import Aggregate
from tidegate.model.readings import VALUE_ABS_MAX, Reading

SAMPLES = st.lists(
    st.tuples(
        st.floats(-VALUE_ABS_MAX, VALUE_ABS_MAX) | st.integers(1500, 3000).map(lambda n: n / 100),
        st.floats(0, 2_000_000_000),
    ),
    min_size=1,
    max_size=40,
)


def combined(samples: list[tuple[float, float]]) -> Aggregate:
    taken = [Aggregate.of(value, time_s) for value, time_s in samples]
    return list(itertools.accumulate(taken, Aggregate.merged))[-1]


@given(SAMPLES, st.data())
def test_any_split_keeps_count_sum_extremes_and_times(samples: list[tuple[float, float]], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(samples)), max_size=10)) | {len(samples)})
    parts = [combined(samples[start:end]) for start, end in itertools.pairwise([0, *cuts])]
    data.draw(st.randoms()).shuffle(parts)
    whole = list(itertools.accumulate(parts, Aggregate.merged))[-1]
    values, times = [value for value, _ in samples], [time_s for _, time_s in samples]
    assert whole == combined(samples)
    assert whole.count == sum(part.count for part in parts) == len(samples)
    assert whole.total == sum(map(Fraction, values))
    assert (whole.min, whole.max) == (min(values), max(values))
    assert (whole.first_s, whole.last_s) == (min(times), max(times))


@given(SAMPLES)
def test_its_reading_is_storable_and_contradicts_nothing(samples: list[tuple[float, float]]) -> None:
    whole = combined(samples)
    reading = whole.reading(boot=3, seq=7)
    assert msgspec.json.decode(msgspec.json.encode(reading), type=Reading) == reading
    assert reading.contradiction() is None
    assert (reading.boot, reading.seq, reading.count, reading.time) == (3, 7, len(samples), whole.last_s)
    assert reading.value == float(whole.total / whole.count)


@given(st.lists(st.integers(-100_000, 100_000), min_size=2, max_size=2_000))
def test_hundredths_come_back_exactly_from_the_mean(hundredths: list[int]) -> None:
    reading = combined([(each / 100, 0.0) for each in hundredths]).reading(boot=0, seq=0)
    assert round(reading.value * reading.count * 100) == sum(hundredths)


def test_one_sample_is_a_plain_reading() -> None:
    assert Aggregate.of(21.5, 1000.25).reading(1, 2) == Reading(value=21.5, boot=1, seq=2, time=1000.25)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), VALUE_ABS_MAX * 1.01])
def test_what_cannot_be_stored_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        Aggregate.of(value, 0.0)
