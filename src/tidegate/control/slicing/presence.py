"""Which processing nodes are spoken of: those that live, and for a while those that have gone.

A node lives while it holds its lease. What it said last stays behind when it dies, and so it can be told apart from one
that never was: it is reported as gone until its last word is ``GONE_S_MAX`` old. Where somebody says how many nodes are
wanted, only as many are missing as are lacking to that number, the lowest numbers first: those beyond it were stopped,
and nobody waits for them.
"""

from collections.abc import Collection, Mapping, Sequence

from tidegate.control.slicing.spreading import by_number
from tidegate.model.observations import NodeState

GONE_S_MAX = 3600.0


def remembered(alive: Collection[str], last_word_s: Mapping[str, float], now_s: float) -> tuple[str, ...]:
    """The names of all nodes that live, and of those that spoke within the last hour; times are Unix times."""
    gone = (name for name, at_s in last_word_s.items() if now_s - at_s <= GONE_S_MAX)
    return tuple(sorted({*alive, *gone}))


def without_stopped(nodes: Sequence[NodeState], nodes_wanted: int) -> tuple[NodeState, ...]:
    """The same nodes without those that have gone because fewer are wanted; 0 where nobody says how many."""
    gone = sorted((node.name for node in nodes if not node.alive), key=by_number)
    lacking = max(0, nodes_wanted - (len(nodes) - len(gone))) if nodes_wanted else len(gone)
    missing = gone[:lacking]
    return tuple(node for node in nodes if node.alive or node.name in missing)
