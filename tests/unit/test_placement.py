"""Which broker takes the next client, and which one a client comes back to."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.placement.sticky import Sticky
from tidegate.control.placement.weighted import choose
from tidegate.gateway.routing import Router
from tidegate.model.routes import Broker, Routes


def broker(name: str, weight: float = 1.0, *, healthy: bool = True) -> Broker:
    return Broker(name=name, host="127.0.0.1", port=1883, weight=weight, healthy=healthy)


@pytest.mark.parametrize(
    ("brokers", "connections", "excluded", "chosen"),
    [
        pytest.param([], {}, (), None, id="no broker takes nobody"),
        pytest.param([broker("a", 0), broker("b", healthy=False)], {}, (), None, id="none that may"),
        pytest.param([broker("a", 0), broker("b")], {"b": 1_000}, (), "b", id="weight 0 takes nobody, however empty"),
        pytest.param([broker("a", healthy=False), broker("b")], {"b": 9}, (), "b", id="an ill one takes nobody"),
        pytest.param([broker("a"), broker("b")], {"a": 3, "b": 2}, (), "b", id="equal weights: the emptier one"),
        pytest.param([broker("a", 2), broker("b")], {"a": 3, "b": 2}, (), "a", id="4/2 is less than 3/1"),
        pytest.param([broker("a", 2), broker("b")], {}, (), "a", id="the first goes to the heavier"),
        pytest.param([broker("a"), broker("b")], {"a": 0, "b": 5}, ("a",), "b", id="one that was tried is passed over"),
        pytest.param([broker("a")], {}, ("a",), None, id="all were tried"),
        pytest.param([broker("new"), broker("old")], {"old": 400}, (), "new", id="a new broker catches up"),
    ],
)
def test_the_next_client_goes_where_the_load_is_least(
    brokers: list[Broker], connections: dict[str, int], excluded: tuple[str, ...], chosen: str | None
) -> None:
    found = choose(brokers, connections, ties=random.Random(1), excluded=excluded)
    assert (found.name if found else None) == chosen


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(0, 300), st.integers(0, 2**32))
def test_shares_follow_the_weights(weights: list[int], clients: int, seed: int) -> None:
    brokers = [broker(str(number), weight) for number, weight in enumerate(weights)]
    ties, connections = random.Random(seed), Counter[str]()
    for count in range(1, clients + 1):
        chosen = choose(brokers, connections, ties=ties)
        assert chosen is not None
        connections[chosen.name] += 1
        for one in brokers:
            assert connections[one.name] >= count * int(one.weight) // sum(weights), "never less than its whole share"


def test_equals_are_told_apart_by_the_seed_and_the_same_seed_chooses_the_same() -> None:
    brokers = [broker(name) for name in "abcd"]

    def first(seed: int) -> str:
        chosen = choose(brokers, {}, ties=random.Random(seed))
        assert chosen is not None
        return chosen.name

    firsts = [first(seed) for seed in range(50)]
    assert firsts == [first(seed) for seed in range(50)]
    assert set(firsts) == set("abcd")


def test_a_client_comes_back_to_its_broker_until_that_may_take_nobody() -> None:
    sticky = Sticky(10)
    sticky.remember("d", "a")
    assert sticky.recall("d", {"a", "b"}) == "a"
    assert sticky.recall("d", {"b"}) is None
    assert sticky.recall("d", {"a", "b"}) is None, "it was forgotten"
    sticky.remember("", "a")
    assert len(sticky) == 0, "a client without an identifier is nobody"


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("ab")), max_size=40))
def test_the_memory_holds_those_seen_last(clients_max: int, seen: list[tuple[str, str]]) -> None:
    sticky = Sticky(clients_max)
    for client, name in seen:
        sticky.remember(client, name)
    recent = list(dict.fromkeys(client for client, _ in reversed(seen)))[:clients_max]
    last = dict(seen)
    assert {client: sticky.recall(client, "ab") for client in "uvwxyz"} == {
        client: last[client] if client in recent else None for client in "uvwxyz"
    }


def test_the_router_counts_what_it_gave_and_remembers_what_was_accepted() -> None:
    router = Router(Routes(brokers=(broker("a", 9), broker("b"))), Sticky(10), random.Random(1))
    first = router.take("d")
    assert first is not None
    assert (first.name, router.connections) == ("a", {"a": 1})
    second = router.take("d", {"a"})
    assert second is not None
    assert second.name == "b"
    router.give_back(first)
    router.accepted("d", second)
    again = router.take("d")
    assert again is not None
    assert (again.name, router.connections) == ("b", {"b": 2}), "where it was accepted, not where the weight is"
    router.routes = Routes(brokers=(broker("a"), broker("b", 0)))
    moved = router.take("d")
    assert moved is not None
    assert moved.name == "a"
