"""Routes follow the brokers' health and addresses, and keep what people said of a broker."""

import msgspec
import pytest

from tidegate.loop.routing import route
from tidegate.model.observations import BrokerState
from tidegate.model.routes import Broker, Routes


def answers(name: str, port: int = 1883, *, healthy: bool = True) -> BrokerState:
    return BrokerState(name=name, address=f"host:{port}", healthy=healthy)


HEAVY = Broker(name="a", host="host", port=1883, weight=3.0, mqtt5=False, proxy_protocol=True)
LIGHT = Broker(name="b", host="host", port=1884, weight=0.5, mqtt5=True)
KNOWN = Routes(brokers=(HEAVY, LIGHT))


@pytest.mark.parametrize(
    ("brokers", "after"),
    [
        pytest.param(
            (answers("a", healthy=False), answers("b", 1884)),
            (msgspec.structs.replace(HEAVY, healthy=False), LIGHT),
            id="its health follows",
        ),
        pytest.param(
            (answers("a", 2883), answers("b", 1884)),
            (msgspec.structs.replace(HEAVY, port=2883), LIGHT),
            id="its address follows",
        ),
        pytest.param((answers("b", 1884),), (LIGHT,), id="one that is gone is forgotten"),
        pytest.param(
            (answers("a"), answers("b", 1884), answers("c", 1885)),
            (HEAVY, LIGHT, Broker(name="c", host="host", port=1885)),
            id="a new one has defaults",
        ),
    ],
)
def test_what_was_said_of_a_broker_outlives_a_change(
    brokers: tuple[BrokerState, ...], after: tuple[Broker, ...]
) -> None:
    routes, proposal = route(KNOWN, brokers, "idle")
    assert routes == Routes(brokers=after)
    assert proposal is not None
    assert msgspec.convert(proposal.plan.actions[0].arguments, Routes) == routes


def test_what_an_operator_wrote_since_is_kept() -> None:
    decided = Routes(brokers=(Broker(name="a", host="host", port=1883), Broker(name="b", host="host", port=1884)))
    calm = (answers("a"), answers("b", 1884))
    assert route(decided, calm, "idle", in_force=KNOWN) == (decided, None), "weights are the operator's own business"
    routes, _ = route(decided, (answers("a", healthy=False), calm[1]), "idle", in_force=KNOWN)
    assert routes == Routes(brokers=(msgspec.structs.replace(HEAVY, healthy=False), LIGHT))


def test_a_first_controller_leaves_fitting_routes_alone() -> None:
    assert route(None, (answers("a"), answers("b", 1884)), "idle", in_force=KNOWN) == (KNOWN, None)


def test_a_first_controller_says_where_clients_go() -> None:
    _, proposal = route(None, (answers("a"), answers("b", 1884)), "idle", in_force=Routes(brokers=()))
    assert proposal is not None
    assert proposal.sentence == "New clients go to a, b because these brokers answer."


def test_where_the_operator_took_the_routes_back_a_change_begins_with_defaults() -> None:
    routes, _ = route(KNOWN, (answers("a", healthy=False), answers("b", 1884)), "idle", in_force=Routes(brokers=()))
    assert routes is not None
    assert [(one.weight, one.mqtt5, one.healthy) for one in routes.brokers] == [(1.0, None, False), (1.0, None, True)]


def test_routes_that_would_leave_no_broker_are_not_made() -> None:
    assert route(KNOWN, (answers("a", healthy=False),), "idle") == (KNOWN, None)
