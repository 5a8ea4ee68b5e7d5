"""Which processing nodes are spoken of: those that live, and those that have gone and are missed."""

import pytest

from tidegate.control.slicing.presence import GONE_S_MAX, remembered, without_stopped
from tidegate.model.observations import NodeState

NOW_S = 1_000_000.0


@pytest.mark.parametrize(
    ("alive", "last_word_s", "names"),
    [
        pytest.param([], {}, (), id="nobody"),
        pytest.param(["b", "a"], {"a": NOW_S}, ("a", "b"), id="one that lives need not have spoken"),
        pytest.param(["a"], {"a": 0.0}, ("a",), id="one that lives may have been silent for ever"),
        pytest.param(["a"], {"a": NOW_S, "b": NOW_S - 5}, ("a", "b"), id="one that has just gone is remembered"),
        pytest.param([], {"b": NOW_S - GONE_S_MAX}, ("b",), id="for an hour"),
        pytest.param([], {"b": NOW_S - GONE_S_MAX - 1}, (), id="and no longer"),
        pytest.param([], {"b": 0.0}, (), id="one that never said when is forgotten at once"),
        pytest.param([], {"b": NOW_S + 60}, ("b",), id="another machine's clock may be ahead"),
    ],
)
def test_who_is_remembered(alive: list[str], last_word_s: dict[str, float], names: tuple[str, ...]) -> None:
    assert remembered(alive, last_word_s, NOW_S) == names


def nodes(alive: str, gone: str) -> tuple[NodeState, ...]:
    names = [*((one, True) for one in alive.split()), *((one, False) for one in gone.split())]
    return tuple(NodeState(name=f"node-{one}", alive=lives, slices=(), rows=0) for one, lives in names)


@pytest.mark.parametrize(
    ("alive", "gone", "wanted", "missing"),
    [
        pytest.param("1 2", "", 2, "", id="all live"),
        pytest.param("1", "2", 2, "2", id="one died"),
        pytest.param("1", "2", 1, "", id="one was stopped"),
        pytest.param("1", "2 10", 2, "2", id="one died after another was stopped"),
        pytest.param("2", "10 9", 3, "9 10", id="numbers, not letters"),
        pytest.param("1 2 3", "4", 2, "", id="more run than are wanted"),
        pytest.param("", "1", 1, "1", id="the only one died"),
        pytest.param("1", "2 3", 0, "2 3", id="nobody says how many"),
    ],
)
def test_who_is_missing(alive: str, gone: str, wanted: int, missing: str) -> None:
    found = without_stopped(nodes(alive, gone), wanted)
    assert {node.name for node in found if node.alive} == {node.name for node in nodes(alive, "")}
    assert {node.name for node in found if not node.alive} == {node.name for node in nodes("", missing)}
