"""What nodes did at their limit and what each class published: counters of many, who come, go and begin anew."""

import math

import msgspec
import pytest

from tidegate.loop.window import Window, WorkAtLimit
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation

WINDOW_S = 3.0


def node(name: str, limit_rows: float, limit_s: float, *, ready: bool = True, alive: bool = True) -> NodeState:
    return NodeState(name=name, alive=alive, slices=(), rows=0, limit_rows=limit_rows, limit_s=limit_s, ready=ready)


def gateway(name: str, **publishes: int) -> GatewayState:
    return GatewayState(
        name=name,
        address="127.0.0.1:1883",
        measured_at_s=0.0,
        connections=1,
        publishes=0,
        acknowledged=0,
        advised=0,
        classes={one: ClassState(devices=1, publishes=total) for one, total in publishes.items()},
    )


def observed(
    at_s: float,
    *nodes: NodeState,
    gateways: tuple[GatewayState, ...] = (),
    arrived: int = 0,
) -> Observation:
    """Gateways that have not said when have just reported."""
    reports = tuple(
        one if one.measured_at_s else msgspec.structs.replace(one, measured_at_s=at_s or 0.1) for one in gateways
    )
    return Observation(
        at_s=at_s, arrived=arrived, committed=0, head_age_s=0.0, devices=1, nodes=nodes, gateways=reports
    )


def fed(*observations: Observation) -> WorkAtLimit:
    monitor = Window(WINDOW_S)
    for observation in observations:
        assert monitor.add(observation)
    return monitor.work()


def test_nothing_seen_is_nothing_claimed() -> None:
    assert Window(WINDOW_S).work() == WorkAtLimit(None, 0.0, {})


def test_a_single_look_is_no_rate() -> None:
    found = fed(observed(0, node("a", 5_000, 10), gateways=(gateway("g", alarm=7),)))
    assert found == WorkAtLimit(None, 0.0, {})


def test_an_idle_node_proves_nothing() -> None:
    found = fed(*(observed(second, node("a", 5_000, 10)) for second in range(6)))
    assert (found.node_rate_per_s, found.busy_share) == (None, 0.0)


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [(0.0, 0.5), (100.0, 0.0)],
    ids=["time at the limit without a row", "rows that took no time"],
)
def test_half_an_evidence_is_none(rows: float, seconds: float) -> None:
    assert fed(observed(0, node("a", 0, 0)), observed(1, node("a", rows, seconds))).node_rate_per_s is None


def test_the_rate_is_rows_over_the_time_at_the_limit_and_not_over_all_time() -> None:
    """A quarter of the time at the limit, at 400 rows a second."""
    found = fed(*(observed(second, node("a", 100 * second, 0.25 * second)) for second in range(10)))
    assert found.node_rate_per_s == pytest.approx(400)
    assert found.busy_share == pytest.approx(0.25)


def test_several_nodes_are_weighed_by_their_time_at_the_limit() -> None:
    """One works at 400 rows a second all the time, one at 100 for half of it, and one is idle."""
    found = fed(
        *(
            observed(second, node("a", 400 * second, second), node("b", 50 * second, 0.5 * second), node("c", 0, 0))
            for second in range(5)
        )
    )
    assert found.node_rate_per_s == pytest.approx(450 / 1.5)
    assert found.busy_share == pytest.approx(1.5 / 3)


def test_only_the_window_counts() -> None:
    """Ten seconds at 100 rows a second, then at 300: a window later nothing of the first is left."""
    before = [observed(second, node("a", 100 * second, second)) for second in range(11)]
    after = [observed(10 + second, node("a", 1_000 + 300 * second, 10 + second)) for second in (1, 2, 3)]
    found = [fed(*before, *after[:count]).node_rate_per_s for count in range(4)]
    assert found == pytest.approx([100, (200 + 300) / 3, (100 + 600) / 3, 300])


def test_a_node_that_warms_up_is_no_time_that_could_have_been_busy() -> None:
    found = fed(
        *(observed(second, node("a", 100 * second, second), node("b", 0, 0, ready=False)) for second in range(4))
    )
    assert found.busy_share == pytest.approx(1.0)


def test_a_node_that_comes_counts_from_what_it_says_first() -> None:
    """It has worked elsewhere before, or nobody looked: what it did until now was not done in this window."""
    found = fed(
        observed(0, node("a", 0, 0)),
        observed(1, node("a", 100, 1), node("b", 90_000, 100)),
        observed(2, node("a", 200, 2), node("b", 90_300, 101)),
    )
    assert found.node_rate_per_s == pytest.approx((200 + 300) / 3)


def test_what_a_node_did_before_it_went_still_counts() -> None:
    found = fed(
        observed(0, node("a", 0, 0), node("b", 0, 0)),
        observed(1, node("a", 100, 1), node("b", 300, 1)),
        observed(2, node("a", 200, 2)),
    )
    assert found.node_rate_per_s == pytest.approx((200 + 300) / 3)
    assert found.busy_share == pytest.approx(3 / 3)


def test_a_node_that_was_not_seen_for_a_moment_counts_from_what_it_says_then() -> None:
    found = fed(
        observed(0, node("a", 0, 0), node("b", 5_000, 50)),
        observed(1, node("a", 100, 1)),
        observed(2, node("a", 200, 2), node("b", 5_600, 52)),
        observed(3, node("a", 300, 3), node("b", 5_900, 53)),
    )
    assert found.node_rate_per_s == pytest.approx((300 + 300) / 4)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param((30.0, 0.1), id="both counters fall"),
        pytest.param((30.0, 60.0), id="only the rows do"),
        pytest.param((6_000.0, 0.1), id="only the time does"),
    ],
)
def test_a_restarted_node_takes_nothing_away(after: tuple[float, float]) -> None:
    rows, seconds = after
    found = fed(
        observed(0, node("a", 5_000, 50)),
        observed(1, node("a", 5_100, 51)),
        observed(2, node("a", rows, seconds)),
        observed(3, node("a", rows + 100, seconds + 1)),
    )
    assert found.node_rate_per_s == pytest.approx(100)
    assert 0.5 < found.busy_share < 1.0


def test_busy_is_at_most_all_the_time() -> None:
    """A batch that ran for three seconds is told at its end, in one look."""
    found = fed(observed(0, node("a", 0, 0)), observed(1, node("a", 600, 3)))
    assert (found.node_rate_per_s, found.busy_share) == (200, 1.0)


def test_uneven_looks_are_weighed_by_time() -> None:
    """A second of work by one of one node for a tenth of a second, and of two nodes for two seconds."""
    found = fed(
        observed(0, node("a", 0, 0)),
        observed(0.1, node("a", 0, 0)),
        observed(2.1, node("a", 200, 1), node("b", 0, 0)),
    )
    assert found.busy_share == pytest.approx(1 / 4.1)


def test_when_the_installation_begins_anew_so_does_the_work() -> None:
    found = fed(
        observed(0, node("a", 0, 0), arrived=100),
        observed(1, node("a", 100, 1), arrived=200),
        observed(2, node("a", 900, 2), arrived=0),
        observed(3, node("a", 1_200, 3), arrived=0),
    )
    assert found.node_rate_per_s == pytest.approx(300)


# -- classes


def published(*looks: tuple[GatewayState, ...]) -> dict[str, float]:
    return fed(*(observed(second, gateways=gateways) for second, gateways in enumerate(looks))).classes_per_s


def test_every_class_has_its_own_rate_over_all_gateways() -> None:
    looks = [
        (gateway("g", alarm=10 * second, telemetry=200 * second), gateway("h", telemetry=100 * second))
        for second in range(8)
    ]
    assert published(*looks) == pytest.approx({"alarm": 10, "telemetry": 300})


def test_a_class_that_appears_counts_from_what_it_says_first() -> None:
    found = published((gateway("g"),), (gateway("g", alarm=500),), (gateway("g", alarm=520),))
    assert found == pytest.approx({"alarm": 20})


def test_a_class_that_is_gone_has_no_rate() -> None:
    assert published((gateway("g", alarm=0),), (gateway("g", alarm=10),), (gateway("g"),)) == {}


def test_a_gateway_that_restarts_takes_nothing_away() -> None:
    looks = ((gateway("g", alarm=900),), (gateway("g", alarm=910),), (gateway("g", alarm=0),))
    assert published(*looks) == {}, "how much is not known, and that is no zero"
    assert published(*looks, (gateway("g", alarm=10),)) == pytest.approx({"alarm": 10})


def test_a_gateway_that_joins_counts_from_what_it_says_first() -> None:
    """What it had counted before anybody looked was not published in this window."""
    first, second, third = (gateway("g", alarm=10 * said) for said in range(3))
    joined = ((first,), (second, gateway("h", alarm=90_000)))
    assert published(*joined) == {}, "what the other one publishes is not all"
    assert published(*joined, (third, gateway("h", alarm=90_005))) == pytest.approx({"alarm": 15})


def test_a_gateway_that_was_not_seen_for_a_moment_is_no_burst() -> None:
    found = published(
        (gateway("g", alarm=0), gateway("h", alarm=90_000)),
        (gateway("g", alarm=10),),
        (gateway("g", alarm=20), gateway("h", alarm=90_020)),
        (gateway("g", alarm=30), gateway("h", alarm=90_030)),
    )
    assert 10 <= found["alarm"] <= 20


def test_the_only_gateway_that_was_not_seen_for_a_moment_has_no_negative_rate() -> None:
    looks = ((gateway("g", alarm=0),), (gateway("g", alarm=100),), (gateway("g", alarm=200),))
    monitor, found = Window(WINDOW_S), []
    for second, gateways in enumerate((*looks, (), (gateway("g", alarm=400),), (gateway("g", alarm=500),))):
        monitor.add(observed(second, gateways=gateways))
        found += monitor.work().classes_per_s.values()
    assert min(found) >= 0
    assert not any(math.isnan(rate) for rate in found)
    assert found[-1] > 0


def test_a_node_that_has_gone_neither_works_nor_idles() -> None:
    """The other one is at its limit all the time; what the gone one did while it was away is not known when."""
    found = fed(
        observed(0.0, node("a", 0, 0), node("b", 0, 0, alive=False)),
        observed(1.0, node("a", 10, 1), node("b", 0, 0, alive=False)),
        observed(2.0, node("a", 20, 2), node("b", 90, 9)),
    )
    assert (found.node_rate_per_s, found.busy_share) == (10.0, pytest.approx(2 / 3))


def test_a_gateway_that_falls_silent_keeps_its_rate_and_makes_no_burst_when_it_speaks_again() -> None:
    monitor, found = Window(WINDOW_S), []
    for second in range(30):
        silent = 5 <= second < 15
        said_s = 4 if silent else second
        one = msgspec.structs.replace(gateway("g", alarm=20 * said_s), measured_at_s=said_s + 1.0)
        monitor.add(observed(second, gateways=(one,)))
        found.append(monitor.work().classes_per_s.get("alarm"))
    assert found == [None] + [pytest.approx(20.0)] * 29
