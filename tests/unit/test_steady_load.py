"""What a steady load sends is a pure function of its arguments."""

from pathlib import Path

import pytest

from tidegate.devices.simulated_values import value_of
from tidegate_bench.rig import steady_load
from tidegate_bench.rig.steady_load import LoadPlan


def test_values_are_a_function_of_seed_device_and_sequence_in_whole_hundredths() -> None:
    values = [value_of(seed, index, seq) for seed in range(2) for index in range(20) for seq in range(50)]
    assert values == [value_of(seed, index, seq) for seed in range(2) for index in range(20) for seq in range(50)]
    assert all(15 <= value <= 30 and round(value * 100) / 100 == value for value in values)
    assert len(set(values)) > 500
    assert values[:1000] != values[1000:]


def test_event_time_is_a_function_of_the_sequence() -> None:
    plan = LoadPlan(devices=2, connections=1, rate=10, count=4, event_time_start=1000.0, event_step=0.5, boot=3)
    reading = plan.reading(1, 6)
    assert (reading.time, reading.boot, reading.seq) == (1003.0, 3, 6)
    assert reading == plan.reading(1, 6)


def test_the_end_is_the_count_or_the_time_whichever_is_first() -> None:
    assert LoadPlan(devices=1, connections=1, rate=10, seconds=2).readings_max() == 20
    assert LoadPlan(devices=1, connections=1, rate=10, seconds=2, count=7).readings_max() == 7


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--devices", "4"], "needs an end"),
        (["--devices", "4", "--connections", "5", "--count", "1"], "5 connections for 4 devices"),
        (["--rate", "0", "--count", "1"], "rate of 0"),
        (["--rate", "nan", "--count", "1"], "rate of nan"),
        (["--count", "1"], "No running installation"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert steady_load.main(["--state", str(tmp_path), "--acks", str(tmp_path / "acks"), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
