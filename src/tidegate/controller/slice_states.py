"""What is known of each slice: whose it is from the control bus, what waits in it from the brokers. Pure."""

from collections.abc import Collection

from tidegate.control.slicing.transfer import Assignment, Ownership
from tidegate.model.backlog import Backlog, SliceBacklog
from tidegate.model.observations import SliceState


def slice_states(assignment: Assignment, backlog: Backlog | None, committed: Collection[int]) -> tuple[SliceState, ...]:
    """``committed`` are the slices whose offset is known; of others nobody can say how much of them waits."""
    measured = {one.slice: one for one in backlog.slices} if backlog is not None else {}
    return tuple(
        _state(number, ownership, measured.get(number), has_offset=number in committed)
        for number, ownership in enumerate(assignment.ownerships)
    )


def _state(number: int, ownership: Ownership, measured: SliceBacklog | None, *, has_offset: bool) -> SliceState:
    moves = ownership.taker if ownership.taker != ownership.owner else None
    waiting, age_s = _lag(measured, has_offset=has_offset) if measured is not None else (None, None)
    return SliceState(
        number=number,
        owner=ownership.owner,
        epoch=ownership.epoch,
        taker=moves,
        stored=measured.last_sequence if measured is not None else None,
        waiting=waiting,
        age_s=age_s,
    )


def _lag(measured: SliceBacklog, *, has_offset: bool) -> tuple[int | None, float | None]:
    """A log that ends before what is committed of it is another log: nobody knows what waits there."""
    if measured.committed > measured.last_sequence or not (has_offset or measured.last_sequence == 0):
        return None, None
    if not measured.waiting:
        return 0, 0.0
    return measured.waiting, measured.head_age_s if measured.head_time_s is not None else None
