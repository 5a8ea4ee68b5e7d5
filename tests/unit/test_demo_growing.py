"""The verdict of the demo that grows, from tables whose delays are known by construction."""

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from tidegate.demo.growing import Growth, checks, growth, table
from tidegate.demo.verdict import Act, NodeSpan

BEGAN_S = 1_000.0
EMPTY_S = 0.2
Message = tuple[float, float]


def rows(*messages: Message) -> pa.Table:
    """(arrived in the log, committed) of each message, in seconds after the beginning."""
    arrived, committed = np.array(messages, float).reshape(-1, 2).T
    return pa.table({"arrived_s": arrived + BEGAN_S, "committed_s": committed + BEGAN_S})


def span(name: str, started: float, working: float | None = None, ended: float | None = None) -> NodeSpan:
    times = {"working_s": working, "ended_s": ended}
    return NodeSpan(
        name=name,
        started_s=BEGAN_S + started,
        **{key: None if value is None else BEGAN_S + value for key, value in times.items()},
    )


FIRST = span("node-1", 0.2, working=0.3)


def act(*nodes: NodeSpan, **changes: object) -> Act:
    """Calm for 10 s, a flood until 30 s, the end at 40 s."""
    return Act(
        name="act-1",
        protected=True,
        began_s=BEGAN_S,
        flood_from_s=BEGAN_S + 10,
        flood_to_s=BEGAN_S + 30,
        ended_s=BEGAN_S + 40,
        advised_s=BEGAN_S + 11,
        interval_s_max=1.5,
        interval_s_end=0.0,
        nodes=nodes or (FIRST,),
        **{"fleet": {"kept_schedule": True}, "acknowledged": 9, "lost": 0, "duplicated": 0, **changes},
    )


def test_delays_are_those_of_the_floods_messages_from_the_log_to_the_commit() -> None:
    found = growth(act(), rows((9.9, 19.9), (10, 10.2), (20, 20.4), (30, 30.6), (30.1, 40.1)), EMPTY_S)
    assert (found.messages, found.messages_counted) == (3, 3)
    assert (found.delay_s_p50, found.delay_s_mean) == (0.4, 0.4)
    assert found.delay_s_p95 == pytest.approx(0.58)
    assert found.delay_s_p50_starting == 0.0


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        pytest.param((11, 11.9), True, id="committed before the node was started"),
        pytest.param((11, 12.0), False, id="committed while it starts"),
        pytest.param((13, 14.0), False, id="all of it while it starts"),
        pytest.param((17.9, 29.0), False, id="arrived while it starts, committed long after"),
        pytest.param((18.0, 18.5), False, id="arrived as it begins to work"),
        pytest.param((18.1, 18.5), True, id="arrived when it works"),
    ],
)
def test_what_waited_while_a_node_starts_is_told_apart(message: Message, counts: bool) -> None:
    found = growth(act(FIRST, span("node-2", 12, working=18)), rows(message), EMPTY_S)
    assert (found.messages, found.messages_counted) == (1, int(counts))
    delay_s = round(message[1] - message[0], 3)
    assert (found.delay_s_p50, found.delay_s_p50_starting) == ((delay_s, 0.0) if counts else (0.0, delay_s))


@pytest.mark.parametrize(
    ("second", "until_s"),
    [
        pytest.param(span("node-2", 12, working=18, ended=35), 18.0, id="until it works"),
        pytest.param(span("node-2", 12, ended=16), 16.0, id="until it ended without having worked"),
        pytest.param(span("node-2", 12), 30.0, id="to the end, where it neither worked nor ended"),
        pytest.param(span("node-2", 0.9, working=18), 0.0, id="a node of the beginning is not started in the act"),
    ],
)
def test_how_long_a_node_starts(second: NodeSpan, until_s: float) -> None:
    """A message every second, committed a tenth of a second later."""
    messages = [(at_s + 0.5, at_s + 0.6) for at_s in range(10, 30)]
    found = growth(act(FIRST, second), rows(*messages), EMPTY_S)
    starting = sum(at_s + 0.6 >= 12 and at_s + 0.5 <= until_s for at_s in range(10, 30))
    assert found.messages_counted == 20 - starting


def test_two_nodes_that_start_exclude_the_time_of_both() -> None:
    nodes = (FIRST, span("node-2", 12, working=14), span("node-3", 20, working=22))
    messages = [(at_s + 0.5, at_s + 0.6) for at_s in range(10, 30)]
    assert growth(act(*nodes), rows(*messages), EMPTY_S).messages_counted == 16


@pytest.mark.parametrize(
    ("nodes", "started", "stopped"),
    [
        pytest.param((FIRST,), 0, 0, id="one node all the time"),
        pytest.param((FIRST, span("node-2", 12, working=18)), 1, 0, id="a second one that stays"),
        pytest.param((FIRST, span("node-2", 12, working=18, ended=35)), 1, 1, id="a second one that goes"),
        pytest.param((FIRST, span("node-2", 12)), 0, 0, id="one that never worked was not started"),
        pytest.param(
            (FIRST, span("node-2", 12, working=18, ended=20), span("node-2", 21, working=25, ended=35)),
            2,
            2,
            id="the same name twice",
        ),
    ],
)
def test_nodes_that_came_and_went(nodes: tuple[NodeSpan, ...], started: int, stopped: int) -> None:
    found = growth(act(*nodes), rows((20, 20.1)), EMPTY_S)
    assert (found.nodes_started, found.nodes_stopped) == (started, stopped)


def test_a_first_node_that_crashed_and_came_back_is_no_growth() -> None:
    """The chain never had more than one node: nothing that was wanted was started, and nothing of it stopped."""
    crashed = (span("node-1", 0.2, working=0.3, ended=15), span("node-1", 15.5, working=20))
    found = {one.name: one.holds for one in checks(growth(act(*crashed), rows((25, 25.1)), EMPTY_S))}
    assert not (found["nodes_started"] and found["nodes_stopped"])


GOOD = growth(
    act(FIRST, span("node-2", 12, working=18, ended=35)), rows((11, 11.3), (13, 17), (20, 20.4), (25, 25.4)), EMPTY_S
)


def test_a_chain_that_grew_and_shrank_holds() -> None:
    found = checks(GOOD)
    assert all(one.holds for one in found)
    assert {one.name: one.value for one in found}["delay_vs_empty_batch"] == 2.0


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"delay_s_p50": 0.61}, "delay_vs_empty_batch"),
        ({"messages_counted": 0, "delay_s_p50": 0.0}, "delay_vs_empty_batch"),
        ({"lost": 1}, "ledger_exact"),
        ({"duplicated": 1}, "ledger_exact"),
        ({"acknowledged": 0}, "ledger_exact"),
        ({"nodes_started": 0}, "nodes_started"),
        ({"nodes_stopped": 0}, "nodes_stopped"),
        ({"kept_schedule": False}, "fleet_kept_schedule"),
    ],
)
def test_each_check_can_fail(changes: dict[str, object], fails: str) -> None:
    found = checks(msgspec.structs.replace(GOOD, **changes))
    assert [one.name for one in found if not one.holds] == [fails]


def test_an_act_without_a_message_fails_and_is_no_fault() -> None:
    found = growth(act(), rows(), EMPTY_S)
    assert (found.messages, found.delay_s_p50, found.delay_s_p95) == (0, 0.0, 0.0)
    assert "delay_vs_empty_batch" in [one.name for one in checks(found) if not one.holds]


def test_figures_are_plain_values_that_json_can_hold() -> None:
    assert msgspec.json.decode(msgspec.json.encode(GOOD), type=Growth) == GOOD


def test_the_table_says_what_was_stored() -> None:
    assert dict(table(GOOD))["acknowledged and stored"] == "9 of 9, each once"
    worse = msgspec.structs.replace(GOOD, acknowledged=1_200, lost=100, duplicated=3)
    assert dict(table(worse))["acknowledged and stored"] == "1,100 of 1,200, 3 twice"
