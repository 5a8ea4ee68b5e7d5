"""Which slices move when processing nodes come or go: every node that stays gets an even share, with the fewest moves.

Nodes are told apart by the number at the end of their name: where there are too many, those with the highest numbers
are emptied, which are the ones that are stopped.
"""

import re
from collections.abc import Collection, Mapping

import msgspec

from tidegate.control.slicing.transfer import Assignment

_NUMBER = re.compile(r"\d+$")


class Move(msgspec.Struct, frozen=True, kw_only=True):
    slice: int
    giver: str
    taker: str


def by_number(name: str) -> tuple[int, str]:
    """A key to sort by: node-10 comes after node-9, and a name without a number before all."""
    found = _NUMBER.search(name)
    return (int(found.group()) if found else -1, name)


def bound_for(assignment: Assignment, alive: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Each living node's slices once every slice has arrived: one that is on its way counts for its taker."""
    bound: dict[str, list[int]] = {node: [] for node in alive}
    for slice_, ownership in enumerate(assignment.ownerships):
        node = ownership.taker if ownership.taker in bound else ownership.owner
        if node is not None and node in bound:
            bound[node].append(slice_)
    return {node: tuple(slices) for node, slices in bound.items()}


def stayers(nodes: Collection[str], wanted: int) -> tuple[str, ...]:
    """As many as are wanted, those with the lowest numbers."""
    return tuple(sorted(nodes, key=by_number)[: max(0, wanted)])


def slices_to_move(held: Mapping[str, Collection[int]], staying: Collection[str]) -> tuple[Move, ...]:
    """The moves after which the nodes that stay have all slices, and none has two more than another.

    ``held`` says which slices each node has, or will have when moves under way have ended; a node that stays and is
    not named in it has none. The same values give the same moves, and after these moves there are no more.
    """
    order = sorted(set(staying), key=by_number)
    if not order:
        return ()
    shares = _shares({node: len(held.get(node, ())) for node in order}, sum(map(len, held.values())))
    loose = sorted((slice_, node) for node, slices in held.items() for slice_ in sorted(slices)[shares.get(node, 0) :])
    lacks = {node: shares[node] - len(held.get(node, ())) for node in order}
    moves = []
    for slice_, giver in loose:
        taker = max(order, key=lacks.__getitem__)
        lacks[taker] -= 1
        moves.append(Move(slice=slice_, giver=giver, taker=taker))
    return tuple(moves)


def _shares(counts: Mapping[str, int], slices: int) -> dict[str, int]:
    """How many slices each node shall have: who has the most keeps the one that does not divide, which saves a move."""
    least, over = divmod(slices, len(counts))
    by_count = sorted(counts, key=lambda node: -counts[node])
    return {node: least + (place < over) for place, node in enumerate(by_count)}
