"""Routes follow the brokers' health and addresses, and keep what people said of a broker."""

import msgspec
import pytest

from tidegate.loop.in_force import REPEATED_S
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.loop.planner import Planner, PlannerState
from tidegate.loop.policies.routes import FollowHealth, RoutesState
from tidegate.loop.promises import Promises
from tidegate.loop.wishes import wishes
from tidegate.model.actions import Route
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.observations import BrokerState
from tidegate.model.routes import Broker, Routes


def answers(name: str, port: int = 1883, *, healthy: bool = True) -> BrokerState:
    return BrokerState(name=name, address=f"host:{port}", healthy=healthy)


HEAVY = Broker(name="a", host="host", port=1883, weight=3.0, mqtt5=False, proxy_protocol=True)
LIGHT = Broker(name="b", host="host", port=1884, weight=0.5, mqtt5=True)
KNOWN = Routes(brokers=(HEAVY, LIGHT))


class Routing:
    """The policy and what is in force of it, round by round; ``actual`` is what gateways follow."""

    def __init__(self, actual: Routes | None) -> None:
        self.actual = actual
        self._state, self._standing = RoutesState(), Standing()

    def round(self, brokers: tuple[BrokerState, ...], at_s: float = 0.0) -> Proposal | None:
        known = Knowledge(
            at_s=at_s,
            measured_at_s=at_s,
            complete=False,
            properties={},
            in_force={"route": self._standing},
            brokers=brokers,
            routes=self.actual,
        )
        self._state, judgement = FollowHealth().step(self._state, known)
        if judgement is None:
            return None
        wished = wishes("routes", FollowHealth.families, judgement)
        planned = Planner(Promises()).step(
            PlannerState(in_force=known.in_force), {name: [wish] for name, wish in wished.items()}, known, Mode()
        )
        after, proposals = planned.state.in_force, planned.proposals
        self._standing = after["route"]
        return proposals[0] if proposals else None

    def routes(self, brokers: tuple[BrokerState, ...]) -> Routes | None:
        """What is said of them; None where nothing is."""
        proposal = self.round(brokers)
        if proposal is None:
            return None
        action = proposal.action
        assert isinstance(action, Route)
        return action.routes


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
    assert Routing(KNOWN).routes(brokers) == Routes(brokers=after)


def test_what_an_operator_wrote_since_is_kept() -> None:
    calm = (answers("a"), answers("b", 1884))
    decided = Routes(brokers=(Broker(name="a", host="host", port=1883), Broker(name="b", host="host", port=1884)))
    routing = Routing(decided)
    routing.routes(calm)
    routing.actual = KNOWN
    assert routing.routes(calm) is None, "weights are the operator's own business"
    expected = Routes(brokers=(msgspec.structs.replace(HEAVY, healthy=False), LIGHT))
    assert routing.routes((answers("a", healthy=False), calm[1])) == expected


def test_a_first_controller_leaves_fitting_routes_alone() -> None:
    assert Routing(KNOWN).round((answers("a"), answers("b", 1884))) is None


def test_a_first_controller_says_where_clients_go() -> None:
    proposal = Routing(Routes(brokers=())).round((answers("a"), answers("b", 1884)))
    assert proposal is not None
    assert proposal.sentence == "New clients go to a, b because these brokers answer."


def test_where_the_operator_took_the_routes_back_a_change_begins_with_defaults() -> None:
    routing = Routing(KNOWN)
    routing.routes((answers("a"), answers("b", 1884)))
    routing.actual = Routes(brokers=())
    routes = routing.routes((answers("a", healthy=False), answers("b", 1884)))
    assert routes is not None
    assert [(one.weight, one.mqtt5, one.healthy) for one in routes.brokers] == [(1.0, None, False), (1.0, None, True)]


def test_routes_that_were_lost_are_said_again() -> None:
    """A control bus that lost its store has none: gateways that start then would find no broker."""
    routing, calm = Routing(KNOWN), (answers("a"), answers("b", 1884))
    routing.routes(calm)
    routing.actual = Routes(brokers=())
    proposal = routing.round(calm, at_s=REPEATED_S)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded) == (True, False)


def test_routes_that_would_leave_no_broker_are_not_made() -> None:
    assert Routing(KNOWN).round((answers("a", healthy=False),)) is None
