"""Weighted max-min by hand: who is modest gets what it asks for, the rest goes by weight."""

import math

import pytest

from tidegate.control.send_rate.sharing import Party, level


@pytest.mark.parametrize(
    ("parties", "capacity", "rates"),
    [
        pytest.param([Party(1, 10, 2)], 40, [2], id="enough for one"),
        pytest.param([Party(1, 10, 2)], 10, [1], id="half of what one wants"),
        pytest.param([Party(1, 10, 2), Party(1, 10, 2)], 20, [1, 1], id="equals share alike"),
        pytest.param(
            [Party(3, 10, 2), Party(1, 10, 2)], 20, [1.5, 0.5], id="three times the weight, three times as much"
        ),
        pytest.param([Party(16, 10, 2), Party(1, 10, 2)], 30, [2, 1], id="what the satisfied leave goes to the rest"),
        pytest.param([Party(1, 10, 0.1), Party(1, 10, 2)], 10, [0.1, 0.9], id="the modest are not asked to pay"),
        pytest.param([Party(1, 10, 2), Party(1, 40, 2)], 50, [1, 1], id="a large class counts by its size"),
        pytest.param([Party(1, 10, 2)], 0, [0], id="nothing to share"),
        pytest.param([Party(1, 10, 2)], -5, [0], id="less than nothing to share"),
        pytest.param([Party(1, 0, 2), Party(1, 10, 2)], 10, [1, 1], id="an empty class takes nothing"),
    ],
)
def test_rates(parties: list[Party], capacity: float, rates: list[float]) -> None:
    found = level(parties, capacity)
    assert [party.rate(found) for party in parties] == pytest.approx(rates)


def test_where_everything_fits_there_is_no_level() -> None:
    assert level([Party(1, 10, 2), Party(5, 3, 1)], 23) == math.inf
    assert level([], 0) == math.inf
