"""Two minutes of the processing nodes: batches become rates, counters become arrivals, work at the limit a capacity."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.observations import NodeState, SliceState
from tidegate.model.progress import BATCHES_SAID, Batch
from tidegate.model.view import ChainStates
from tidegate.web.values.node_history import NodeHistory, NodeRecord


def node(name: str = "n1", **fields: Any) -> NodeState:
    values: dict[str, Any] = {"alive": True, "slices": (0,), "rows": 100}
    return NodeState(name=name, **(values | fields))


def slice_(number: int, stored: int | None, owner: str = "n1") -> SliceState:
    return SliceState(number=number, owner=owner, stored=stored)


def batches(until_s: float, per_s: float = 100.0, seconds: float = 1.0, count: int = 10) -> tuple[Batch, ...]:
    """So many without a pause, the last of which ends then."""
    return tuple(
        Batch(at_s=until_s - seconds * (count - 1 - place), rows=round(per_s * seconds), seconds=seconds)
        for place in range(count)
    )


def followed(*states: tuple[float, NodeState]) -> NodeRecord:
    history = NodeHistory()
    for at_s, state in states:
        history.follow(ChainStates(nodes=(state,)), at_s)
    return history.records()["n1"]


def processed(record: NodeRecord) -> list[float | None]:
    return [one.processed_per_s for one in record.moments]


# -- what is processed


@given(st.floats(0.05, 4.0), st.floats(0.0, 1.0))
def test_a_node_that_never_pauses_has_a_steady_rate_however_its_batches_fall(seconds: float, share: float) -> None:
    """A window that counted whole batches would jump by one of them."""
    said = tuple(
        Batch(at_s=1000.0 + seconds * place, rows=10_000, seconds=seconds) for place in range(1, 3 + int(10 / seconds))
    )
    at_s = said[-1].at_s - share * seconds
    (moment,) = followed((at_s, node(batches=said))).moments
    assert moment.processed_per_s == pytest.approx(10_000 / seconds, rel=1e-6)


def test_while_a_batch_may_be_under_way_nobody_knows_its_rate() -> None:
    said = batches(100.0, seconds=2.0)
    assert processed(followed((100.0, node(batches=said)), (104.5, node(batches=said)))) == [100.0, None]


def test_a_node_that_stalls_falls_to_nothing() -> None:
    said = batches(100.0)
    record = followed(*((100.0 + second, node(batches=said)) for second in range(8)))
    assert processed(record) == [100.0, 80.0, 60.0, 40.0, 20.0, 0.0, 0.0, 0.0]
    assert record.processed_per_s == 0.0


def test_of_a_node_that_has_gone_the_line_ends() -> None:
    said = batches(100.0)
    assert processed(followed((100.0, node(batches=said)), (110.0, node(batches=said, alive=False)))) == [100.0, None]


def test_a_node_that_works_and_had_no_rows_yet_processes_nothing_and_one_that_warms_up_is_unknown() -> None:
    assert processed(followed((100.0, node()))) == [0.0]
    assert processed(followed((100.0, node(ready=False)))) == [None]


def test_batches_are_joined_over_looks_and_kept_for_two_minutes() -> None:
    history = NodeHistory()
    for second in range(300):
        said = batches(1000.0 + second, count=min(second + 1, BATCHES_SAID))
        history.follow(ChainStates(nodes=(node(batches=said),)), 1000.0 + second)
    record = history.records()["n1"]
    ends_s = [one.at_s for one in record.batches]
    assert ends_s == [1000.0 + second for second in range(179, 300)]
    assert set(processed(record)) == {100.0}


def test_where_batches_may_be_missing_the_past_begins_anew() -> None:
    """A gap would look as if the node had been idle."""
    full = batches(100.0, count=BATCHES_SAID), batches(200.0, count=BATCHES_SAID)
    record = followed((100.0, node(batches=full[0])), (200.0, node(batches=full[1])))
    assert record.batches == full[1]
    assert processed(record) == [None, 100.0]


def test_a_node_that_began_anew_goes_on_where_the_one_before_it_stopped() -> None:
    first, second = batches(100.0, count=8), batches(110.0, count=2)
    record = followed((100.0, node(batches=first, rows=800)), (110.0, node(batches=second, rows=200)))
    assert record.batches == (*first, *second)


# -- what arrives


def test_what_arrives_for_a_node_is_what_its_slices_store() -> None:
    history = NodeHistory()
    for at_s, stored in ((10.0, (100, 50, 70)), (12.0, (140, 50, 170))):
        slices = tuple(slice_(number, count, "n2" if number == 2 else "n1") for number, count in enumerate(stored))
        history.follow(ChainStates(nodes=(node(), node("n2")), slices=slices), at_s)
    now = {name: record.now for name, record in history.records().items()}
    assert [one.arriving_per_s for one in now.values() if one] == [20.0, 50.0]


@pytest.mark.parametrize(
    ("before", "after"),
    [((5, 5), (9, None)), ((5, 5), (9, 3))],
    ids=["the brokers do not say it of one slice", "the log of one is shorter than it was"],
)
def test_half_a_sum_does_not_pass_for_the_whole(before: tuple[int | None, ...], after: tuple[int | None, ...]) -> None:
    history = NodeHistory()
    for at_s, stored in ((10.0, before), (12.0, after)):
        slices = tuple(slice_(number, count) for number, count in enumerate(stored))
        history.follow(ChainStates(nodes=(node(),), slices=slices), at_s)
    now = history.records()["n1"].now
    assert now is not None
    assert now.arriving_per_s is None


# -- what it can do


def test_capacity_is_that_of_late_work_at_the_limit_and_stands_until_there_is_more() -> None:
    states = [
        (10.0, node(limit_rows=1000.0, limit_s=10.0)),  # all that is known: since it started
        (12.0, node(limit_rows=1600.0, limit_s=12.0)),
        *((20.0 + 10 * number, node(limit_rows=1600.0, limit_s=12.0)) for number in range(20)),  # idle
        (212.0, node(limit_rows=1700.0, limit_s=14.0)),  # slower than before
        (214.0, node(rows=0)),  # it began anew
    ]
    found = [one.capacity_per_s for one in followed(*states[:3]).moments]
    assert found == [100.0, 300.0, 300.0]
    assert [one.capacity_per_s for one in followed(*states).moments[-3:]] == [300.0, 50.0, 50.0]


def test_a_node_that_was_never_at_its_limit_has_no_capacity() -> None:
    assert [one.capacity_per_s for one in followed((10.0, node()), (11.0, node())).moments] == [None, None]


# -- refused readings, and time


@pytest.mark.parametrize(
    ("passed_s", "expected"),
    [(9.0, None), (30.0, {"too old": 6.0, "not JSON": 2.0})],
    ids=["too short", "half a minute"],
)
def test_refused_readings_are_counted_per_minute(passed_s: float, expected: dict[str, float] | None) -> None:
    record = followed(
        (10.0, node(rejects={"too old": 2})), (10.0 + passed_s, node(rejects={"too old": 5, "not JSON": 1}))
    )
    assert record.refused_per_min == expected


def test_the_same_measurement_twice_and_two_within_a_second_are_one_point() -> None:
    record = followed((10.0, node()), (10.0, node()), (10.4, node()), (11.0, node()))
    assert [one.at_s for one in record.moments] == [10.4, 11.0]


def test_a_node_that_has_gone_is_remembered_for_two_minutes() -> None:
    history = NodeHistory()
    history.follow(ChainStates(nodes=(node("gone"),)), 0.0)
    for second in range(300):
        history.follow(ChainStates(nodes=(node(),)), float(second))
        assert ("gone" in history.records()) == (second < 120)


def test_a_clock_that_is_set_back_begins_anew() -> None:
    record = followed((5000.0, node()), (1000.0, node()), (1001.0, node()))
    assert [one.at_s for one in record.moments] == [1000.0, 1001.0]
