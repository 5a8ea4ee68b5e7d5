"""The sentence that dashboard, terminal and API share."""

import pytest

from tidegate.model.decisions import Mode
from tidegate.model.view import Sample, duration, is_ageing, seconds, state_of


def sample(at_s: float, age_s: float, *, interval_s: float = 0.0) -> Sample:
    return Sample(
        at_s=at_s,
        age_s=age_s,
        arrival_per_s=1_900.4,
        departure_per_s=1_100.0,
        waiting=10,
        devices=800,
        interval_s=interval_s,
        capacity_per_s=None,
        phase="idle",
    )


def rising(to_s: float) -> tuple[Sample, ...]:
    return tuple(sample(second, to_s - 10 + second) for second in range(11))


@pytest.mark.parametrize(
    ("samples", "mode", "sentence", "severity"),
    [
        ((), Mode(), "Nothing is known yet: the first measurement is on its way.", "caution"),
        ((sample(0, 0.31),), Mode(), "Data is 0.31 s old. Nobody is slowed.", "good"),
        (
            rising(24.0),
            Mode(send_rate="off"),
            "Data is 24 s old and ageing: 1,900 msg/s arrive, Spark takes 1,100. Nobody is slowed (protection is off).",
            "danger",
        ),
        ((sample(0, 3.0),), Mode(frozen=True), "Data is 3 s old. Nobody is slowed (all acting is frozen).", "caution"),
        ((sample(0, 3.0),), Mode(send_rate="shadow"), "Data is 3 s old. Nobody is slowed (shadow mode).", "caution"),
        (
            (sample(0, 1.2, interval_s=2.25),),
            Mode(),
            "Data is 1.2 s old. 800 devices are asked to send every 2.2 s.",
            "good",
        ),
    ],
    ids=["nothing yet", "calm", "a flood without protection", "frozen", "shadow", "held"],
)
def test_the_state_in_one_sentence(samples: tuple[Sample, ...], mode: Mode, sentence: str, severity: str) -> None:
    found = state_of(samples, mode)
    assert (found.sentence, found.severity) == (sentence, severity)


@pytest.mark.parametrize(
    ("ages_s", "ageing"),
    [([5.0] * 9, False), ([5.0, 4.0, 3.0], False), ([1.0, 1.2, 1.9], False), ([2.0, 3.0, 4.0], True)],
    ids=["old but steady", "getting fresher", "too fresh to matter", "older every second"],
)
def test_ageing_is_said_only_where_it_matters(ages_s: list[float], ageing: bool) -> None:
    assert is_ageing(tuple(sample(second, age_s) for second, age_s in enumerate(ages_s))) is ageing


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00 s"), (0.0094, "0.01 s"), (0.314, "0.31 s"), (9.96, "10 s"), (24.4, "24 s"), (1234.5, "1,234 s")],
)
def test_seconds_have_two_digits_and_a_unit(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (3_600.0, "60 min"), (7_300.0, "2 h"), (1e6, "12 days")],
)
def test_long_times_are_told_in_a_unit_that_fits(value: float, text: str) -> None:
    assert duration(value) == text
