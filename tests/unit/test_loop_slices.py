"""Slices follow the processing nodes, once per change of these."""

import pytest

from tidegate.loop.in_force import REPEATED_S
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.loop.planner import Planner, PlannerState
from tidegate.loop.policies.slices import SETTLED_S, SlicesState, SpreadSlices
from tidegate.loop.promises import Promises
from tidegate.loop.wishes import wishes
from tidegate.model.actions import MoveSlices
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.intents import Count
from tidegate.model.observations import NodeState


def node(name: str, *slices: int, ready: bool = True, alive: bool = True) -> NodeState:
    return NodeState(name=name, alive=alive, slices=slices, rows=0, ready=ready)


ONE = (node("node-1", 0, 1, 2, 3),)
TWO = (node("node-1", 0, 1, 2, 3), node("node-2"))
EVEN = (node("node-1", 0, 1), node("node-2", 2, 3))


class Spreading:
    """The policy and what is in force of it, round by round."""

    def __init__(self) -> None:
        self.state, self.standing = SlicesState(), Standing()

    def round(self, nodes: tuple[NodeState, ...], wanted: int | None, at_s: float) -> Proposal | None:
        asked = {} if wanted is None else {"nodes": Standing(values={"": Count(nodes=wanted)}, acted=True)}
        known = Knowledge(
            at_s=at_s,
            measured_at_s=at_s,
            complete=False,
            properties={},
            in_force={"slice": self.standing, **asked},
            nodes=nodes,
        )
        self.state, judgement = SpreadSlices().step(self.state, known)
        if judgement is None:
            return None
        wished = wishes("slices", SpreadSlices.families, judgement)
        planned = Planner(Promises()).step(
            PlannerState(in_force=known.in_force), {name: [wish] for name, wish in wished.items()}, known, Mode()
        )
        after, proposals = planned.state.in_force, planned.proposals
        self.standing = after["slice"]
        return proposals[0] if proposals else None

    def moves(self, nodes: tuple[NodeState, ...], wanted: int | None, at_s: float) -> dict[int, str]:
        proposal = self.round(nodes, wanted, at_s)
        if proposal is None:
            return {}
        action = proposal.action
        assert isinstance(action, MoveSlices)
        return action.takers


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
    assert Spreading().moves(nodes, wanted, 1_000.0) == moves


def test_slices_are_spread_once_per_change_and_again_for_those_that_did_not_arrive() -> None:
    spreading = Spreading()
    said = [
        (second, proposal.recorded)
        for second in range(200)
        if (proposal := spreading.round(TWO, 2, 1_000.0 + second)) is not None
    ]
    again = range(int(REPEATED_S), int(SETTLED_S) + 1, int(REPEATED_S))
    assert said == [(0, True), *((second, False) for second in again)]


def test_only_what_did_not_arrive_is_sent_again() -> None:
    spreading = Spreading()
    assert spreading.moves(TWO, 2, 1_000.0) == {2: "node-2", 3: "node-2"}
    assert spreading.moves((node("node-1", 0, 1, 2), node("node-2", 3)), 2, 1_010.0) == {2: "node-2"}


def test_what_an_operator_moved_by_hand_stays_there() -> None:
    spreading = Spreading()
    assert spreading.moves(EVEN, 2, 1_000.0) == {}
    for second in range(1_070, 1_200):
        assert spreading.moves(TWO, 2, float(second)) == {}


def test_a_change_of_nodes_is_followed_at_once_however_recent_the_last() -> None:
    spreading = Spreading()
    spreading.round(TWO, 2, 1_000.0)
    assert set(spreading.moves((*EVEN, node("node-3")), 3, 1_001.0).values()) == {"node-3"}


def test_a_move_is_one_decision_that_names_every_slice() -> None:
    proposal = Spreading().round(TWO, None, 1_000.0)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded, proposal.by) == (True, True, "slices")
    assert proposal.sentence == (
        "Slices move (slice 2 to node-2, slice 3 to node-2) because the processing nodes changed."
    )


def test_nodes_that_have_gone_are_not_among_those_that_slices_are_shared_by() -> None:
    nodes = (*TWO, node("node-3", ready=False), node("node-4", alive=False))
    proposal = Spreading().round(nodes, None, 1_000.0)
    assert proposal is not None
    assert proposal.reason.measurements == {"nodes": 3.0, "ready": 2.0}
