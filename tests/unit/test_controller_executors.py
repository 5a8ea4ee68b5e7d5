"""Moving slices: what is refused as a whole was not carried out."""

import pytest

from tidegate.bus.client import Bus
from tidegate.control.slicing.transfer import Assignment, Ownership
from tidegate.controller.executors import Executors
from tidegate.model.actions import MoveSlices
from tidegate.model.errors import TidegateError


class OnPaper:
    """Two slices of node-1, and a node-2 that runs beside it."""

    def __init__(self) -> None:
        self.assignment = Assignment((Ownership("node-1", 1), Ownership("node-1", 1)))

    def current(self) -> Assignment:
        return self.assignment

    def move_all(self, takers: dict[int, str]) -> dict[int, str]:
        refused = {}
        for slice_, taker in takers.items():
            after = self.assignment.request(slice_, taker, ["node-1", "node-2"])
            if isinstance(after, str):
                refused[slice_] = after
            else:
                self.assignment = after
        return refused


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Executors:
    monkeypatch.setattr("tidegate.controller.executors.Assignments", lambda _: OnPaper())
    return Executors(Bus(["nats://nowhere"]))


@pytest.mark.parametrize(
    ("takers", "why"),
    [
        ({99: "node-2"}, "there is no slice 99"),
        ({0: "gone", 1: "gone"}, "there is no running node gone"),
        ({0: "node-1", 1: "gone"}, "there is no running node gone"),
    ],
)
def test_a_move_that_is_refused_is_an_error(executors: Executors, takers: dict[int, str], why: str) -> None:
    with pytest.raises(TidegateError, match=f"No slice can be moved: {why}"):
        executors.carry_out(MoveSlices(takers=takers))


@pytest.mark.parametrize("takers", [{0: "node-2"}, {0: "node-2", 1: "gone"}, {0: "node-1"}, {0: "node-1", 1: "node-1"}])
def test_a_move_of_some_or_to_where_they_are_is_none(executors: Executors, takers: dict[int, str]) -> None:
    executors.carry_out(MoveSlices(takers=takers))
