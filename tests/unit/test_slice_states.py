"""What is known of each slice, from its owner on the bus and its backlog at the brokers."""

import pytest

from tidegate.control.slicing.transfer import Assignment, Ownership
from tidegate.controller.slice_states import slice_states
from tidegate.model.backlog import Backlog, SliceBacklog
from tidegate.model.observations import SliceState

OWNED = Assignment((Ownership("n1", 4),))


def measured(last: int, committed: int, head_time_s: float | None = None, head_age_s: float = 0.0) -> Backlog:
    one = SliceBacklog(slice=0, last_sequence=last, committed=committed, head_time_s=head_time_s, head_age_s=head_age_s)
    return Backlog(slices=(one,), upstream_waiting=0, measured_at_s=100.0)


@pytest.mark.parametrize(
    ("backlog", "offsets", "expected"),
    [
        (measured(90, 90), {0}, (90, 0, 0.0)),
        (measured(90, 60, 88.0, 12.0), {0}, (90, 30, 12.0)),
        (measured(90, 60), {0}, (90, 30, None)),
        (measured(90, 0, 88.0, 12.0), set(), (90, None, None)),
        (measured(0, 0), set(), (0, 0, 0.0)),
        (measured(40, 60), {0}, (40, None, None)),
        (None, {0}, (None, None, None)),
    ],
    ids=[
        "nothing waits",
        "some wait",
        "the first that waits cannot be found",
        "nobody has said what is committed",
        "nothing was ever stored",
        "the log ends before what is committed",
        "the brokers did not answer",
    ],
)
def test_how_far_a_slice_is(
    backlog: Backlog | None, offsets: set[int], expected: tuple[int | None, int | None, float | None]
) -> None:
    (found,) = slice_states(OWNED, backlog, offsets)
    assert (found.stored, found.waiting, found.age_s) == expected
    assert (found.owner, found.epoch) == ("n1", 4)


def test_whose_a_slice_is_and_where_it_goes() -> None:
    ownerships = (Ownership("n1", 4, "n2"), Ownership(None, 2), Ownership("n1", 4, "n1"))
    assert slice_states(Assignment(ownerships), None, ()) == (
        SliceState(number=0, owner="n1", epoch=4, taker="n2"),
        SliceState(number=1, epoch=2),
        SliceState(number=2, owner="n1", epoch=4),
    )
