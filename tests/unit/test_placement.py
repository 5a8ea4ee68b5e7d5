"""Which broker takes the next client, and which one a client comes back to."""

import itertools
import random
from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.placement.weighted import choose
from tidegate.gateway.routing import Router
from tidegate.gateway.shared.brokers import key_of
from tidegate.gateway.shared.memory import Shared
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


def router_of(*brokers: Broker, clients_max: int = 10) -> Router:
    clock = itertools.count().__next__
    return Router(Routes(brokers=brokers), Shared.alone(clients_max=clients_max), random.Random(1), clock=clock)


def taken(router: Router, client_id: str, excluded: Collection[str] = ()) -> str | None:
    """Where the client would go now."""
    found = router.take(router.known(router.digest(client_id)), excluded)
    if found is None:
        return None
    router.give_back(found)
    return found.name


def test_a_client_comes_back_to_its_broker_for_as_long_as_that_may_take_it() -> None:
    a, b = broker("a", 9), broker("b")
    router = router_of(a, b)
    assert taken(router, "d") == "a"
    router.accepted(router.digest("d"), b)
    assert taken(router, "d") == "b", "where it was accepted, not where the weight is"
    assert taken(router, "d", {"b"}) == "a", "unless that did not answer"
    router.routes = Routes(brokers=(a, broker("b", 0)))
    assert taken(router, "d") == "a"
    router.routes = Routes(brokers=(a, b))
    router.left(router.digest("d"), None, 0.0)
    assert taken(router, "d") == "b"


def test_a_client_without_an_identifier_is_nobody() -> None:
    router = router_of(broker("a", 9), broker("b"))
    router.accepted(b"", broker("b"))
    router.left(router.digest(""), None, 0.0)
    assert taken(router, "") == "a"
    assert router.known(b"") is None


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("ab")), max_size=40))
def test_the_memory_holds_those_seen_last(clients_max: int, seen: list[tuple[str, str]]) -> None:
    router = router_of(broker("a"), broker("b"), clients_max=clients_max)
    for client, name in seen:
        router.accepted(router.digest(client), broker(name))
    recent = list(dict.fromkeys(client for client, _ in reversed(seen)))[:clients_max]
    last = dict(seen)
    for client in "uvwxyz":
        known = router.known(router.digest(client))
        assert (known.broker if known else None) == (key_of(last[client]) if client in recent else None)


def test_the_router_counts_what_it_gave_until_it_is_given_back() -> None:
    router = router_of(broker("a", 9), broker("b"))
    first, second = router.take(router.known(router.digest("d"))), router.take(router.known(router.digest("d")), {"a"})
    assert first is not None
    assert second is not None
    assert router.connections == {"a": 1, "b": 1}
    router.give_back(first)
    assert router.connections == {"b": 1}


def test_the_processes_of_a_gateway_count_and_remember_together() -> None:
    shared = Shared.create(processes=2, clients_max=10)
    brokers = (broker("a"), broker("b"))
    left, right = (Router(Routes(brokers=brokers), shared, random.Random(1), slot=slot) for slot in (0, 1))
    counts = Counter(found.name for router in (left, right) * 5 if (found := router.take(None)) is not None)
    assert counts == {"a": 5, "b": 5} == left.connections == right.connections
    left.accepted(left.digest("d"), brokers[1])
    assert {taken(right, "d") for _ in range(9)} == {"b"}
