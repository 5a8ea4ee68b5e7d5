"""The slices as a coloured row and as a table, pure: how old the oldest reading is that the tables lack."""

from collections.abc import Collection, Iterable

from tidegate.model.observations import NodeState, SliceState
from tidegate.model.view import AGE_S_CAUTION, AGE_S_DANGER, seconds
from tidegate.web.components.cells import Cell
from tidegate.web.components.table import Table
from tidegate.web.values.words import UNKNOWN, number, shortened

OWNER_LETTERS_MAX = 24
NO_SLICES = "The brokers keep no log in slices, or nobody has said yet whose they are."


def cells(slices: Iterable[SliceState], nodes: Iterable[NodeState]) -> tuple[Cell, ...]:
    living = {node.name for node in nodes if node.alive}
    return tuple(
        Cell(
            name=f"slice {one.number}",
            value=_value(one),
            detail=_detail(one, living),
            title=title(one, living),
            severity=severity(one, living),
            is_moving=one.taker is not None,
        )
        for one in slices
    )


def severity(one: SliceState, living: Collection[str]) -> str:
    """By the age of what waits. A slice that nobody works on is worth caution before anything in it is old."""
    if one.waiting is None or one.age_s is None:
        return "unknown"
    if one.age_s >= AGE_S_DANGER:
        return "danger"
    return "caution" if one.age_s >= AGE_S_CAUTION or one.owner not in living else "good"


def _value(one: SliceState) -> str:
    if one.waiting is None:
        return "not known"
    if one.waiting == 0:
        return "up to date"
    return f"{seconds(one.age_s)} old" if one.age_s is not None else f"{number(one.waiting)} wait"


def _detail(one: SliceState, living: Collection[str]) -> str:
    owner = shortened(one.owner, OWNER_LETTERS_MAX) if one.owner is not None else "nobody's"
    if one.taker is not None:
        return f"{owner} → {shortened(one.taker, OWNER_LETTERS_MAX)}"
    return owner if one.owner is None or one.owner in living else f"{owner}, gone"


def title(one: SliceState, living: Collection[str]) -> str:
    """All that is known of it, in sentences."""
    if one.owner is None:
        owned = f"Slice {one.number} is nobody's"
    elif one.owner in living:
        owned = f"Slice {one.number} is on {one.owner}"
    else:
        owned = f"Slice {one.number} is on {one.owner}, which does not answer"
    moves = f", on its way to {one.taker}" if one.taker is not None else ""
    return f"{owned}{moves} (epoch {one.epoch}). {_lag(one)}"


def _lag(one: SliceState) -> str:
    if one.waiting is None:
        return "How much of it waits is not known."
    if one.waiting == 0:
        return "The tables have all of it."
    wait = "reading waits" if one.waiting == 1 else "readings wait"
    old = f", the oldest for {seconds(one.age_s)}" if one.age_s is not None else ", for how long is not known"
    return f"{number(one.waiting)} {wait}{old}."


def furthest_behind(slices: Iterable[SliceState]) -> SliceState | None:
    """The slice whose oldest reading has waited longest; None where nothing waits, as far as is known."""
    waiting = [one for one in slices if one.waiting]
    return max(waiting, key=lambda one: (one.age_s or 0.0, one.waiting or 0), default=None)


def slice_table(slices: Iterable[SliceState]) -> Table:
    return Table(
        columns=("Slice", "Node", "On its way to", "Epoch", "Waiting", "Age of data"),
        numeric=frozenset({"Epoch", "Waiting", "Age of data"}),
        rows=tuple(
            (
                str(one.number),
                one.owner or "nobody",
                one.taker or "stays",
                number(one.epoch),
                number(one.waiting),
                _age(one),
            )
            for one in slices
        ),
        empty=NO_SLICES,
    )


def _age(one: SliceState) -> str:
    if one.waiting == 0:
        return "up to date"
    return seconds(one.age_s) if one.age_s is not None else UNKNOWN
