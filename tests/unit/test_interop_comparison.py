"""When two observations are the same, what is said where they are not, and what the checks make of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidegate_bench.interop import comparison
from tidegate_bench.interop.behaviours_of_5 import ONLY_5
from tidegate_bench.interop.comparison import (
    COMPARED_MIN,
    FIVE_ON_NATS,
    NOT_CARRIED,
    ON_NATS,
    ComparisonOutcome,
    differ,
    text_of,
)
from tidegate_bench.interop.matrix import COMMON, comparisons, left_out
from tidegate_bench.interop.peer import Extras, Heard, shown_payload
from tidegate_bench.interop.rates import LEVEL, Tally

MQTT_5_PAGE = Path(__file__).parents[2] / "docs" / "mqtt5.md"


@pytest.mark.parametrize(
    ("direct", "through", "versions_differ", "note"),
    [
        pytest.param({"a": 1}, {"a": 1}, False, "", id="equal"),
        pytest.param({"a": 1}, {"a": 2}, False, "a: directly 1, through the gateway 2", id="another value is said"),
        pytest.param({"a": 1}, {}, False, "a: directly 1, through the gateway nothing", id="what is missing is said"),
        pytest.param({"heard": []}, {"raised": "x"}, False, None, id="an error is no silence"),
        pytest.param({"close code": None}, {"close code": 142}, True, "", id="3.1.1 cannot say a close code"),
        pytest.param({"close code": None}, {"close code": 142}, False, None, id="within 5 it counts"),
        pytest.param({"code": 5}, {"code": 0x87}, True, "", id="codes that say the same"),
        pytest.param({"code": 5}, {"code": 0x86}, True, None, id="codes that say something else"),
        pytest.param({"code": 0}, {"code": 0x87}, True, None, id="accepted and refused"),
    ],
)
def test_what_differs_is_said_and_counted_apart(
    direct: dict[str, Any], through: dict[str, Any], versions_differ: bool, note: str | None
) -> None:
    said = differ(direct, through, versions_differ=versions_differ)
    assert said == note if note is not None else said != ""
    texts = {text_of(side, versions_differ=versions_differ) for side in (direct, through)}
    assert len(texts) == (2 if said else 1)


def test_a_long_difference_is_cut() -> None:
    said = differ({"a": "x" * 10_000}, {"a": ""}, versions_differ=False)
    assert len(said) < 2 * comparison.DIFFERENCE_CHARACTERS_MAX


def test_the_row_of_a_difference_has_both_counts_and_what_was_seen() -> None:
    tally = Tally(Counter({'{"heard":2}': 19, '{"heard":1}': 1}), Counter({'{"heard":1}': 20}))
    outcome = comparison.judged(outcomes(ON_NATS, 1, same=False)[0], tally, behaviours=300)
    row = outcome.row()
    assert outcome.same is False
    assert (row["direct_plays"], row["direct_otherwise"]) == (20, 1)
    assert (row["through_plays"], row["through_otherwise"]) == (20, 20)
    assert row["otherwise"] == [{"what": "heard: 1", "direct": 1, "through": 20}]
    assert row["p"] < row["p_corrected"] < LEVEL


def test_what_was_not_played_often_enough_is_not_the_same() -> None:
    tally = Tally(Counter({"{}": 19}), Counter({"{}": 19}))
    assert comparison.judged(outcomes(ON_NATS, 1, same=False)[0], tally, behaviours=300).same is False


def outcomes(stack: str, count: int, same: bool | None = True) -> list[ComparisonOutcome]:
    return [ComparisonOutcome(stack=stack, client="paho", behaviour=str(number), same=same) for number in range(count)]


def test_one_difference_fails_the_whole() -> None:
    every = [outcome for stack in COMPARED_MIN for outcome in outcomes(stack, 200)]
    assert holds(every, "same_as_direct")
    assert not holds([*every, *outcomes(ON_NATS, 1, same=False)], "same_as_direct")


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
