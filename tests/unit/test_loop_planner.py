"""From a verdict to actions: what is a decision, what only a renewal, and what is left alone."""

import msgspec
import pytest

from tidegate.control.policy import Seen, Verdict
from tidegate.loop import planner
from tidegate.loop.planner import REPEATED_S, SETTLED_S, Given, Proposal, Scaled, Spread
from tidegate.model.advice import INTERVAL_S_MAX, Advice
from tidegate.model.observations import NodeState
from tidegate.model.scaling import Scale

LIFETIME_S = 9.0
MEASUREMENTS = {"waiting": 70.0}


def seen(at_s: float = 0.0, *, nodes_working: int = 1, starting: int = 0) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=True,
        waiting=70,
        head_age_s=3.0,
        arrival_per_s=90.0,
        departure_per_s=50.0,
        devices=40,
        nodes_working=nodes_working,
        nodes_starting=starting,
        node_rate_per_s=50.0,
    )


def verdict(rate: float | None = None, **more: object) -> Verdict:
    said = {"phase": "hold", "capacity_per_s": 50.0, "rule": "the rule", "rejected": "another: no", **more}
    return msgspec.convert({"rate_per_device": rate, **said}, Verdict)


def advised(given: Given, wanted: Verdict, at_s: float, *, acts: bool = True) -> tuple[Given, Proposal | None]:
    return planner.advise(given, seen(at_s), wanted, MEASUREMENTS, LIFETIME_S, acts=acts)


def decided(wanted: Verdict, at_s: float = 0.0, *, acts: bool = True) -> Given:
    given, proposal = advised(Given(), wanted, at_s, acts=acts)
    assert proposal is not None
    return given


def arguments(proposal: Proposal | None) -> dict:
    assert proposal is not None
    (action,) = proposal.plan.actions
    return action.arguments


# -- advice


def test_advice_names_each_class_and_its_dead_band_and_the_reason() -> None:
    wanted = verdict(0.5, classes={"alarm": None, "telemetry": 0.25}, dead_bands={"door": 3.0})
    _, proposal = advised(Given(), wanted, 100.0)
    assert arguments(proposal) == {
        "interval_s": 2.0,
        "lifetime_s": 12.0,
        "classes": {"alarm": 0.0, "telemetry": 4.0},
        "dead_bands": {"door": 3.0},
    }
    assert proposal is not None
    assert proposal.sentence == (
        "Devices are asked to send less often (door changes 3 times as large, telemetry every 4 s) because data is "
        "3 s old and Spark takes 50 msg/s."
    )
    reason = proposal.plan.actions[0].reason
    assert (reason.measurements, reason.rule, reason.rejected) == (MEASUREMENTS, "the rule", "another: no")
    # What gateways read: an alarm device is left alone, one of no class keeps to the general interval.
    advice = msgspec.convert(arguments(proposal), Advice)
    assert [advice.interval_of(name) for name in ("alarm", "telemetry", "unheard-of", None)] == [0.0, 4.0, 2.0, 2.0]
    assert [advice.dead_band_of(name) for name in ("door", "alarm")] == [3.0, 1.0]


@pytest.mark.parametrize(
    ("rate", "classes", "lifetime_s"),
    [
        pytest.param(1.0, {}, LIFETIME_S, id="short intervals: as it is set"),
        pytest.param(0.1, {}, 30.0, id="three intervals, where that is longer"),
        pytest.param(1.0, {"telemetry": 0.05}, 60.0, id="the slowest class counts"),
        pytest.param(1 / 3000, {}, INTERVAL_S_MAX, id="no longer than advice may live"),
    ],
)
def test_a_lease_outlives_the_longest_interval(rate: float, classes: dict[str, float], lifetime_s: float) -> None:
    _, proposal = advised(Given(), verdict(rate, classes=classes), 0.0)
    assert arguments(proposal)["lifetime_s"] == pytest.approx(lifetime_s)


def test_a_rate_below_the_slowest_is_the_longest_interval() -> None:
    _, proposal = advised(Given(), verdict(1e-9, classes={"telemetry": 1e-12}), 0.0)
    assert arguments(proposal)["interval_s"] == arguments(proposal)["classes"]["telemetry"] == INTERVAL_S_MAX
    msgspec.convert(arguments(proposal), Advice)


FIRST = verdict(0.5, classes={"alarm": None, "telemetry": 0.25}, dead_bands={"door": 3.0})


@pytest.mark.parametrize(
    ("after", "is_decision"),
    [
        pytest.param(FIRST, False, id="the same"),
        pytest.param(verdict(0.495, classes=FIRST.classes, dead_bands=FIRST.dead_bands), False, id="by 1 %"),
        pytest.param(verdict(0.48, classes=FIRST.classes, dead_bands=FIRST.dead_bands), True, id="by 4 %"),
        pytest.param(
            verdict(0.5, classes={"alarm": None, "telemetry": 0.26}, dead_bands=FIRST.dead_bands), True, id="one class"
        ),
        pytest.param(
            verdict(0.5, classes={"alarm": 100.0, "telemetry": 0.25}, dead_bands=FIRST.dead_bands),
            True,
            id="a class that was not held at all is now, if only a little",
        ),
        pytest.param(verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.2}), True, id="a dead band"),
        pytest.param(verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.01}), False, id="a dead band, hardly"),
        pytest.param(verdict(0.5, classes=FIRST.classes), True, id="no dead band any more"),
        pytest.param(
            verdict(0.5, classes={**FIRST.classes, "meter": 0.5}, dead_bands=FIRST.dead_bands),
            False,
            id="a new class with what those without a class have: it has it already",
        ),
        pytest.param(
            verdict(0.5, classes={**FIRST.classes, "meter": 0.4}, dead_bands=FIRST.dead_bands),
            True,
            id="a new class with another interval",
        ),
        pytest.param(
            verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.0, "window": 1.0}),
            False,
            id="a band of 1 is none",
        ),
    ],
)
def test_what_is_a_change(after: Verdict, is_decision: bool) -> None:
    _, proposal = advised(decided(FIRST), after, 1.0)
    assert (proposal is not None) is is_decision
    assert proposal is None or proposal.recorded


def test_small_changes_add_up_to_a_decision() -> None:
    """Each step is below 2 %; it is held against what devices were told, not against the step before it."""
    given, decisions = decided(verdict(0.5)), 0
    for step in range(1, 11):
        given, proposal = advised(given, verdict(0.5 * 0.99**step), 0.1 * step)
        decisions += proposal is not None
    assert decisions == 5
    assert given.interval_s == pytest.approx(2.0 / 0.99**10, rel=0.02)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(verdict(0.5), id="an interval"),
        pytest.param(verdict(None, classes={"telemetry": 0.5}), id="of a class alone"),
        pytest.param(verdict(None, dead_bands={"door": 2.0}), id="a dead band alone"),
    ],
)
def test_whatever_holds_somebody_is_renewed_for_as_long_as_it_does(wanted: Verdict) -> None:
    given, renewed = decided(wanted), []
    for second in range(1, 101):
        given, proposal = advised(given, wanted, float(second))
        if proposal is not None:
            assert not proposal.recorded
            renewed.append(second)
    assert renewed == list(range(3, 100, 3))


def test_a_withdrawal_is_repeated_for_a_lifetime_and_then_there_is_silence() -> None:
    given, said = decided(verdict(1.0)), []
    for second in range(1, 60):
        given, proposal = advised(given, verdict(None), float(second))
        if proposal is not None:
            said.append((second, proposal.recorded, arguments(proposal)["interval_s"]))
    assert said == [(1, True, 0.0), (4, False, 0.0), (7, False, 0.0)]


def test_a_withdrawal_is_heard_while_a_lease_of_the_advice_before_it_may_be_left() -> None:
    """Devices that send every 20 s have a lease of 60 s and hear the withdrawal with their next message only."""
    given = decided(verdict(0.05))
    left_until_s = given.lifetime_s
    known_until_s = 0.0  # to gateways, as the bus keeps it
    for second in range(1, 90):
        given, proposal = advised(given, verdict(None), float(second))
        if proposal is not None:
            known_until_s = second + arguments(proposal)["lifetime_s"]
    assert known_until_s >= left_until_s


def test_in_shadow_a_change_is_said_once_and_holds_nobody() -> None:
    given, proposal = advised(Given(), FIRST, 0.0, acts=False)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded) == (False, True)
    assert (given.in_force(1.0), given.kept_to(1.0).classes) == (0.0, {})
    assert [advised(given, FIRST, float(second), acts=False)[1] for second in range(1, 60)] == [None] * 59


def test_who_may_act_again_tells_devices_what_was_only_a_shadow() -> None:
    given = decided(FIRST, acts=False)
    given, proposal = advised(given, FIRST, 1.0)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded) == (True, True)
    assert given.kept_to(1.0).classes == {"alarm": 0.0, "telemetry": 4.0}


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(verdict(0.5), id="an interval"),
        pytest.param(verdict(None, classes={"telemetry": 0.5}), id="of a class alone"),
        pytest.param(verdict(None, dead_bands={"door": 2.0}), id="a dead band alone"),
    ],
)
def test_shadow_begins_with_what_devices_still_keep_to(wanted: Verdict) -> None:
    """The lease that is left says the same, so there is nothing to decide until it has lapsed."""
    given = decided(wanted)
    said = []
    for second in range(1, 20):
        given, proposal = advised(given, wanted, float(second), acts=False)
        said += [] if proposal is None else [(second, proposal.acts)]
    assert said == [(9, False)]


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (verdict(None), False),
        (verdict(None, classes={"alarm": None}, dead_bands={"door": 1.0}), False),
        (verdict(0.5), True),
        (verdict(None, classes={"telemetry": 0.5}), True),
        (verdict(None, dead_bands={"door": 1.5}), True),
    ],
)
def test_a_sentence_says_that_devices_are_free_only_where_all_are(wanted: Verdict, holds: bool) -> None:
    _, proposal = advised(decided(FIRST), wanted, 1.0)
    assert proposal is not None
    assert proposal.sentence.startswith("Devices return to their default") is not holds


# -- the number of processing nodes


def scaled(
    before: Scaled, wanted: int | None, at_s: float, *, nodes_working: int = 1, starting: int = 0, acts: bool = True
) -> tuple[Scaled, Proposal | None]:
    looked = seen(at_s, nodes_working=nodes_working, starting=starting)
    said = verdict(None, nodes_wanted=wanted, demand_per_s=1234.5)
    return planner.scale(before, looked, said, MEASUREMENTS, acts=acts)


def test_who_wants_no_number_leaves_it_alone() -> None:
    asked = Scaled(nodes_wanted=3, at_s=5.0)
    assert scaled(asked, None, 100.0) == (asked, None)


@pytest.mark.parametrize(("nodes_working", "starting"), [(2, 0), (1, 1)])
def test_the_first_number_is_no_decision_where_so_many_run_already(nodes_working: int, starting: int) -> None:
    after, proposal = scaled(Scaled(), 2, 100.0, nodes_working=nodes_working, starting=starting)
    assert (after.nodes_wanted, proposal) == (2, None)


@pytest.mark.parametrize(
    ("wanted", "running", "change"), [(3, 1, "1 run: more are wanted"), (1, 2, "2 run: fewer are wanted")]
)
def test_another_number_is_one_decision(wanted: int, running: int, change: str) -> None:
    after, proposal = scaled(Scaled(nodes_wanted=running), wanted, 100.0, nodes_working=running)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded, proposal.plan.event) == (True, True, "demand changed")
    assert msgspec.convert(arguments(proposal), Scale) == Scale(nodes_wanted=wanted)
    assert f"({change}) because devices want to send 1,234 msg/s, one takes 50." in proposal.sentence
    assert scaled(after, wanted, 101.0, nodes_working=running, starting=max(0, wanted - running)) == (after, None)


def test_a_number_that_runs_already_is_not_called_more_or_fewer() -> None:
    """One node was wanted, the second is still being emptied, and now two are wanted again."""
    _, proposal = scaled(Scaled(nodes_wanted=1, at_s=90.0, acted=True), 2, 100.0, nodes_working=2)
    assert proposal is not None
    assert "2 run: fewer are wanted" not in proposal.sentence
    assert "2 run: more are wanted" not in proposal.sentence


def test_what_was_asked_for_in_vain_is_asked_for_again() -> None:
    state, said = Scaled(), []
    for second in range(100, 131):
        state, proposal = scaled(state, 2, float(second))
        said += [] if proposal is None else [second]
    assert said == [100, 110, 120, 130]


def test_a_node_that_starts_was_not_asked_for_in_vain() -> None:
    state, _ = scaled(Scaled(), 2, 100.0)
    for second in range(101, 160):
        state, proposal = scaled(state, 2, float(second), starting=1)
        assert proposal is None


def test_a_node_that_died_is_asked_for_again() -> None:
    state, _ = scaled(Scaled(), 2, 100.0, nodes_working=2)
    _, proposal = scaled(state, 2, 101.0, nodes_working=1)
    assert arguments(proposal) == {"nodes_wanted": 2}


@pytest.mark.parametrize(("wanted", "running"), [(3, 1), (1, 3)], ids=["more", "fewer"])
def test_what_was_wanted_in_shadow_is_asked_for_when_it_may_be(wanted: int, running: int) -> None:
    state, proposal = scaled(Scaled(), wanted, 100.0, nodes_working=running, acts=False)
    assert proposal is not None
    assert not proposal.acts
    _, proposal = scaled(state, wanted, 111.0, nodes_working=running)
    assert proposal is not None
    assert proposal.acts
    assert arguments(proposal) == {"nodes_wanted": wanted}


def test_in_shadow_a_number_is_said_once() -> None:
    """Nobody was asked, so nobody was asked in vain."""
    state, said = Scaled(), []
    for second in range(100, 160):
        state, proposal = scaled(state, 2, float(second), acts=False)
        said += [] if proposal is None else [second]
    assert said == [100]


# -- slices follow the nodes


def node(name: str, *slices: int, ready: bool = True, alive: bool = True) -> NodeState:
    return NodeState(name=name, alive=alive, slices=slices, rows=0, ready=ready)


ONE = (node("node-1", 0, 1, 2, 3),)
TWO = (node("node-1", 0, 1, 2, 3), node("node-2"))
EVEN = (node("node-1", 0, 1), node("node-2", 2, 3))


@pytest.mark.parametrize(
    ("nodes", "wanted", "moves"),
    [
        pytest.param(ONE, None, {}, id="one node has everything"),
        pytest.param(TWO, None, {2: "node-2", 3: "node-2"}, id="a second node takes its half"),
        pytest.param(
            (node("node-1", 0, 1, 2, 3), node("node-2", ready=False)), None, {}, id="one that warms up takes nothing"
        ),
        pytest.param(
            (node("node-1", 0, 1, 2, 3), node("node-2", alive=False)), None, {}, id="one that has gone takes nothing"
        ),
        pytest.param((node("node-1"), node("node-2")), None, {}, id="nobody has any"),
        pytest.param((), None, {}, id="nobody is there"),
        pytest.param(EVEN, 2, {}, id="what is even stays"),
        pytest.param(EVEN, 1, {2: "node-1", 3: "node-1"}, id="the one that shall go gives its slices back"),
        pytest.param(EVEN, 0, {2: "node-1", 3: "node-1"}, id="somebody has to keep them"),
        pytest.param(TWO, 3, {2: "node-2", 3: "node-2"}, id="who is there takes them, though more are wanted"),
        pytest.param(
            (node("node-1", 0, 1, ready=False), node("node-2", 2), node("node-3", 3)),
            3,
            {},
            id="a node that restarts keeps what it has",
        ),
    ],
)
def test_slices_are_spread_over_the_nodes(nodes: tuple[NodeState, ...], wanted: int | None, moves: dict) -> None:
    _, found = planner.spread(Spread(), nodes, wanted, 1_000.0)
    assert found == moves


def test_slices_are_spread_once_per_change_and_again_for_those_that_did_not_arrive() -> None:
    state, said = Spread(), []
    for second in range(0, 200):
        state, moves = planner.spread(state, TWO, 2, 1_000.0 + second)
        said += [second] if moves else []
    assert said == list(range(0, int(SETTLED_S) + 1, int(REPEATED_S)))


def test_what_an_operator_moved_by_hand_stays_there() -> None:
    state, moves = planner.spread(Spread(), EVEN, 2, 1_000.0)
    assert moves == {}
    by_hand = (node("node-1", 0, 1, 2, 3), node("node-2"))
    for second in range(1_070, 1_200):
        state, moves = planner.spread(state, by_hand, 2, float(second))
        assert moves == {}


def test_a_change_of_nodes_is_followed_at_once_however_recent_the_last() -> None:
    state, _ = planner.spread(Spread(), TWO, 2, 1_000.0)
    _, moves = planner.spread(state, (*EVEN, node("node-3")), 3, 1_001.0)
    assert set(moves.values()) == {"node-3"}


def test_a_move_is_one_decision_that_names_every_slice() -> None:
    proposal = planner.move({3: "node-2", 2: "node-2"}, TWO, "hold")
    assert arguments(proposal) == {"takers": {"2": "node-2", "3": "node-2"}}
    assert proposal is not None
    assert (proposal.acts, proposal.recorded, proposal.phase) == (True, True, "hold")
    assert proposal.sentence == (
        "Slices move (slice 2 to node-2, slice 3 to node-2) because the processing nodes changed."
    )
    assert planner.move({}, TWO, "hold") is None


def test_nodes_that_have_gone_are_not_among_those_that_slices_are_shared_by() -> None:
    proposal = planner.move({3: "node-2"}, (*TWO, node("node-3", ready=False), node("node-4", alive=False)), "hold")
    assert proposal is not None
    assert proposal.plan.actions[0].reason.measurements == {"nodes": 3.0, "ready": 2.0}
