"""When two observations are the same, what is said where they are not, and what the checks make of it."""

from pathlib import Path
from typing import Any

import pytest

from tidegate_bench.interop import comparison
from tidegate_bench.interop.behaviours_of_5 import ONLY_5
from tidegate_bench.interop.comparison import COMPARED_MIN, FIVE_ON_NATS, NOT_CARRIED, ON_NATS, ComparisonOutcome, judge
from tidegate_bench.interop.matrix import COMMON, comparisons, left_out
from tidegate_bench.interop.peer import Extras, Heard, shown_payload

MQTT_5_PAGE = Path(__file__).parents[2] / "docs" / "mqtt5.md"


@pytest.mark.parametrize(
    ("direct", "through", "versions_differ", "same", "note"),
    [
        pytest.param([{"a": 1}], {"a": 1}, False, True, "", id="equal"),
        pytest.param(
            [{"a": 1}], {"a": 2}, False, False, "a: directly 1, through the gateway 2", id="another value is said"
        ),
        pytest.param(
            [{"a": 1}], {}, False, False, "a: directly 1, through the gateway nothing", id="what is missing is said"
        ),
        pytest.param([{"a": 1}, {"a": 2}], {"a": 2}, False, True, "", id="the broker itself varies"),
        pytest.param([{"heard": []}], {"raised": "x"}, False, False, None, id="an error is no silence"),
        pytest.param([{"close code": None}], {"close code": 142}, True, True, "", id="3.1.1 cannot say a close code"),
        pytest.param([{"close code": None}], {"close code": 142}, False, False, None, id="within 5 it counts"),
        pytest.param([{"code": 5}], {"code": 0x87}, True, True, "", id="codes that say the same"),
        pytest.param([{"code": 5}], {"code": 0x86}, True, False, None, id="codes that say something else"),
        pytest.param([{"code": 0}], {"code": 0x87}, True, False, None, id="accepted and refused"),
    ],
)
def test_judging(
    direct: list[dict[str, Any]], through: dict[str, Any], versions_differ: bool, same: bool, note: str | None
) -> None:
    found, said = judge(direct, through, versions_differ=versions_differ)
    assert found is same
    assert said == note if note is not None else said != ""


def test_a_long_difference_is_cut() -> None:
    _, said = judge([{"a": "x" * 10_000}], {"a": ""}, versions_differ=False)
    assert len(said) < 2 * comparison.DIFFERENCE_CHARACTERS_MAX


def outcomes(stack: str, count: int, same: bool | None = True) -> list[ComparisonOutcome]:
    return [ComparisonOutcome(stack=stack, client="paho", behaviour=str(number), same=same) for number in range(count)]


def holds(found: list[ComparisonOutcome], name: str) -> bool:
    return {check.name: check.holds for check in comparison.checks(found)}[name]


def test_one_difference_fails_its_stack_and_no_other() -> None:
    found = [*outcomes(ON_NATS, 100), *outcomes(FIVE_ON_NATS, 100), *outcomes(FIVE_ON_NATS, 1, same=False)]
    assert holds(found, f"same_as_direct[{ON_NATS}]")
    assert not holds(found, f"same_as_direct[{FIVE_ON_NATS}]")


def test_what_was_not_compared_is_not_the_same() -> None:
    found = outcomes(ON_NATS, 100, same=None)
    assert not holds(found, f"same_as_direct[{ON_NATS}]")
    assert not holds(found, f"compared[{ON_NATS}]")


def test_the_matrix_has_every_stack_and_can_reach_its_bars() -> None:
    wanted = [item for item in comparisons(("paho", "aiomqtt", "gmqtt", "mosquitto")) if not left_out(item)]
    for stack, least in COMPARED_MIN.items():
        assert sum(item.stack == stack for item in wanted) > least
    assert all(item.through.side.through and not item.direct.side.through for item in wanted)


def test_only_what_only_mqtt_5_knows_is_left_out() -> None:
    assert set(NOT_CARRIED) <= set(ONLY_5)
    left = {item.through.behaviour for item in comparisons(("paho",)) if left_out(item)}
    assert left.isdisjoint(COMMON)
    assert {"topic alias", "session expiry"}.isdisjoint(left)


@pytest.mark.parametrize("words", sorted(NOT_CARRIED.values()))
def test_what_is_not_carried_is_documented(words: str) -> None:
    assert words in " ".join(MQTT_5_PAGE.read_text().lower().split())


def test_a_message_is_observed_with_its_flags_and_properties() -> None:
    plain = Heard(topic="a", payload=b"x", qos=1, retain=True, duplicate=None)
    assert plain.seen() == {"topic": "a", "payload": "x", "qos": 1, "retain": True, "duplicate": None}
    full = Heard(topic="a", payload=b"", qos=0, retain=False, duplicate=False, extras=Extras(content_type="text"))
    assert full.seen()["properties"] == {"content_type": "text"}


def test_long_payloads_differ_by_their_digest() -> None:
    assert shown_payload(b"short") == "short"
    assert shown_payload(b"a" * 1000) != shown_payload(b"b" * 1000)
    assert len(shown_payload(bytes(10_000))) < 40
