"""How many devices a pattern wants at which moment, and which patterns are none."""

import pytest

from tidegate.devices.pattern import Pattern
from tidegate.model.errors import UserError

FLOOD = Pattern.parse("0:100,10:100,14:800,44:800,48:100")


@pytest.mark.parametrize(
    ("pattern", "at_s", "devices"),
    [
        pytest.param(FLOOD, 0, 100, id="at the first point"),
        pytest.param(FLOOD, 10, 100, id="level"),
        pytest.param(FLOOD, 12, 450, id="half-way up"),
        pytest.param(FLOOD, 44, 800, id="at the top"),
        pytest.param(FLOOD, 47, 275, id="on the way down"),
        pytest.param(FLOOD, 99, 100, id="after the end it stays"),
        pytest.param(Pattern.parse("5:7,6:9"), 0, 7, id="before the first point it is there already"),
        pytest.param(Pattern.parse("0:10,5:10,5:90,9:90"), 4.999, 10, id="just before a step"),
        pytest.param(Pattern.parse("0:10,5:10,5:90,9:90"), 5, 90, id="at a step"),
        pytest.param(Pattern.parse(" 0 : 1 , 2 : 3 "), 1, 2, id="spaces do not matter"),
        pytest.param(Pattern.parse("3:4"), 1, 4, id="one point is a constant"),
        pytest.param(Pattern.constant(6, 2), 1, 6, id="constant"),
    ],
)
def test_devices(pattern: Pattern, at_s: float, devices: int) -> None:
    assert pattern.devices(at_s) == devices


def test_end_and_most_devices() -> None:
    assert (FLOOD.end_s, FLOOD.devices_max) == (48, 800)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the point ''"),
        ("0:10,", "the point ''"),
        ("10", "the point '10'"),
        ("0:ten", "the point '0:ten'"),
        ("0:1.5", "the point '0:1.5'"),
        ("nan:1", "seconds go from 0"),
        ("0:-1", "devices from 0"),
        ("0:1,5:2,4:3", "goes back in time"),
    ],
)
def test_what_is_no_pattern_is_said_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Pattern.parse(text)
