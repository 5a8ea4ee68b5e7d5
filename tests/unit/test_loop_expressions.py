"""Expressions: what they mean, and the sentence for each that is not allowed."""

import pytest

from tidegate.loop.expressions import Expression
from tidegate.loop.monitors import names
from tidegate.model.errors import UserError

VALUES = {
    "head_age_s": 2.0,
    "waiting": 100.0,
    "arrival_per_s": 30.0,
    "departure_per_s": 0.0,
    "devices": 5.0,
    "interval_s": 0.0,
}


def expression(text: str) -> Expression:
    return Expression(text, names(), "[controller] overload")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("head_age_s > 1.5", True),
        ("head_age_s > 1.5 and waiting > 100", False),
        ("head_age_s > 5 or waiting >= 100", True),
        ("not waiting < 50", True),
        ("1 < head_age_s <= 2", True),
        ("waiting / departure_per_s > 1e9", True),
        ("interval_s / departure_per_s == 0", True),
        ("-waiting + 2 * 60 - devices == 15", True),
        ("  waiting != 100 ", False),
    ],
)
def test_meaning(text: str, holds: bool) -> None:
    assert expression(text).holds(VALUES) is holds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no expression"),
        ("head_age_s >", "is no expression"),
        ("head_age > 1", "did you mean head_age_s?"),
        ("temperature > 1", "names temperature, which is no property"),
        ("waiting", "'waiting' is no comparison"),
        ("waiting and devices > 1", "'waiting' is no comparison"),
        ("True", "'True' is no comparison"),
        ("waiting > True", "'True' may not stand there"),
        ("waiting > '1'", "may not stand there"),
        ("waiting ** 9 > 1", "'waiting ** 9' may not stand there"),
        ("__import__('os').getpid() > 1", "may not stand there"),
        ("waiting.real > 1", "may not stand there"),
        ("(waiting > 1) > 0", "may not stand there"),
        ("waiting in devices", "compares in a way that is not allowed"),
        ("waiting > 1 if devices else 0", "is no comparison"),
        ("waiting > 1" + " and waiting > 1" * 50, "longer than 500"),
        ("(" * 240 + "waiting" + ")" * 240 + " > 1", "is no expression"),
    ],
)
def test_refusals_name_the_place(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        expression(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("[controller] overload")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        pytest.param("busy_share > 0.5", None, id="what is not known is no zero"),
        pytest.param("busy_share + 1 > 0.5", None, id="nor is what is made of it"),
        pytest.param("not busy_share > 0.5", None, id="nor its opposite"),
        pytest.param("busy_share > 0.5 or waiting > 50", True, id="one that holds is enough"),
        pytest.param("busy_share > 0.5 and waiting > 500", False, id="one that does not is enough"),
        pytest.param("busy_share > 0.5 and waiting > 50", None, id="it depends on what is not known"),
        pytest.param("0 < busy_share < 1", None, id="between"),
    ],
)
def test_what_is_not_known_decides_nothing(text: str, holds: bool | None) -> None:
    assert expression(text).holds(VALUES) is holds
