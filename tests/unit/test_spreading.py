"""Which slices move when nodes come or go: literal nodes with their slices, and the moves."""

import pytest

from tidegate.control.slicing.spreading import bound_for, slices_to_move, stayers
from tidegate.control.slicing.transfer import Assignment, Ownership

ALL = range(8)
Held = dict[str, range | tuple[int, ...]]


@pytest.mark.parametrize(
    ("held", "wanted", "moves"),
    [
        pytest.param({"node-1": ALL}, 1, [], id="one node has everything"),
        pytest.param(
            {"node-1": ALL, "node-2": ()},
            2,
            [(4, "node-1", "node-2"), (5, "node-1", "node-2"), (6, "node-1", "node-2"), (7, "node-1", "node-2")],
            id="a second node gets half",
        ),
        pytest.param(
            {"node-1": range(4), "node-2": range(4, 8), "node-3": ()},
            3,
            [(3, "node-1", "node-3"), (7, "node-2", "node-3")],
            id="a third node gets two, one from each",
        ),
        pytest.param({"node-1": range(4), "node-2": range(4, 8)}, 2, [], id="what is even stays"),
        pytest.param({"node-1": range(5), "node-2": range(5, 9)}, 2, [], id="one more is even enough"),
        pytest.param(
            {"node-1": range(3), "node-2": range(3, 8)},
            2,
            [(7, "node-2", "node-1")],
            id="two more is not",
        ),
        pytest.param(
            {"node-1": (0, 1), "node-2": (2, 3, 4)},
            2,
            [],
            id="who has the odd one keeps it",
        ),
        pytest.param(
            {"node-1": (0, 1, 2), "node-2": (3, 4, 5), "node-3": (6, 7)},
            2,
            [(6, "node-3", "node-1"), (7, "node-3", "node-2")],
            id="the highest number is emptied, and who takes gets as much as the other",
        ),
        pytest.param(
            {"node-2": (0,), "node-10": (1,), "node-9": (2,)},
            2,
            [(1, "node-10", "node-2")],
            id="ten is more than nine",
        ),
        pytest.param(
            {"node-1": (), "node-2": (3, 4)},
            1,
            [(3, "node-2", "node-1"), (4, "node-2", "node-1")],
            id="the last node takes everything",
        ),
        pytest.param({"left": (0,), "right": (1, 2, 3)}, 2, [(3, "right", "left")], id="names need no number"),
        pytest.param({"node-1": (0,), "node-2": ()}, 2, [], id="fewer slices than nodes"),
        pytest.param({"node-1": (0, 1)}, 5, [], id="who is wanted and not there gets nothing"),
        pytest.param({"node-1": (0, 1)}, 0, [], id="where nobody stays nothing can move"),
        pytest.param({}, 2, [], id="no node at all"),
    ],
)
def test_moves(held: Held, wanted: int, moves: list[tuple[int, str, str]]) -> None:
    found = slices_to_move(held, stayers(held, wanted))
    assert [(move.slice, move.giver, move.taker) for move in found] == moves


def test_a_slice_on_its_way_counts_for_its_taker_so_it_is_not_moved_again() -> None:
    on_its_way = Assignment((Ownership("node-1", 1), Ownership("node-1", 1, "node-2")))
    held = bound_for(on_its_way, ["node-1", "node-2"])
    assert held == {"node-1": (0,), "node-2": (1,)}
    assert slices_to_move(held, ("node-1", "node-2")) == ()


def test_a_slice_whose_taker_has_died_is_still_its_givers() -> None:
    assert bound_for(Assignment((Ownership("node-1", 1, "node-2"),)), ["node-1"]) == {"node-1": (0,)}


def test_slices_of_nobody_and_of_the_dead_are_not_spread() -> None:
    assert bound_for(Assignment((Ownership(), Ownership("node-2", 3))), ["node-1"]) == {"node-1": ()}
