"""One budget for all that unsettles the chain: slices, nodes and routes that change.

What protects data or the chain is never kept waiting, and is paid for all the same; what only balances or saves waits
until there is enough again. What devices are told costs nothing: it moves nobody.
"""

import msgspec

from tidegate.model.actions import Action, MoveSlices, Route, ScaleNodes
from tidegate.model.intents import Priority

MOVES_MAX = 128.0
MOVES_PER_S = MOVES_MAX / 60.0


class Churn(msgspec.Struct, frozen=True, kw_only=True):
    """``moves`` are what may still be spent; below 0 where more was."""

    moves: float = MOVES_MAX
    at_s: float = 0.0

    def grown(self, at_s: float) -> "Churn":
        passed_s = max(0.0, at_s - self.at_s) if self.at_s else 0.0
        return Churn(moves=min(MOVES_MAX, self.moves + passed_s * MOVES_PER_S), at_s=at_s)

    def spent(self, cost: float) -> "Churn":
        return msgspec.structs.replace(self, moves=max(-MOVES_MAX, self.moves - cost))

    def allows(self, cost: float, priority: Priority) -> bool:
        return cost <= 0 or priority >= Priority.PROTECT_CHAIN or self.moves >= min(cost, MOVES_MAX)


def cost_of(action: Action) -> float:
    """In moves."""
    match action:
        case MoveSlices(takers=takers):
            return float(len(takers))
        case Route() | ScaleNodes():
            return 1.0
    return 0.0
