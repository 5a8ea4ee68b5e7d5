"""Which processing node works on which slice: they follow the nodes, once per change of these.

What did not get there is wanted again for a while; after that, what an operator moved by hand stays where it is.
"""

from typing import cast

import msgspec

from tidegate.control.slicing.spreading import slices_to_move, stayers
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.policy import Judgement
from tidegate.model.intents import Count, Intent, Owner, Priority, Reason

SETTLED_S = 60.0


class SlicesState(msgspec.Struct, frozen=True, kw_only=True):
    """The processing nodes that slices were last spread over, and since when."""

    over: tuple[str, ...] = ()
    since_s: float = 0.0


class SpreadSlices:
    name = "slices"
    families = ("slice",)
    serves = ()
    state_type = SlicesState

    def initial(self) -> SlicesState:
        return SlicesState()

    def step(self, state: SlicesState, knowledge: Knowledge) -> tuple[SlicesState, Judgement | None]:
        held = {node.name: node.slices for node in knowledge.nodes if node.is_working}
        if not any(held.values()):
            return state, None
        asked = cast("Count | None", knowledge.kept_to("nodes").get(""))
        staying = stayers(held, len(held) if asked is None else max(1, asked.nodes))
        if staying != state.over:
            state = SlicesState(over=staying, since_s=knowledge.measured_at_s)
        elif knowledge.measured_at_s - state.since_s > SETTLED_S:
            return state, Judgement()
        reason = Reason(
            measurements={
                "nodes": float(sum(node.alive for node in knowledge.nodes)),
                "ready": float(sum(node.is_working for node in knowledge.nodes)),
            },
            rule="every node that stays has as many slices as the others, or one more",
            rejected="leave the slices where they are: a node without slices does nothing",
            because="the processing nodes changed",
        )
        intents = tuple(
            Intent(
                resource=f"slice/{move.slice}",
                wanted=Owner(node=move.taker),
                priority=Priority.BALANCE,
                reason=reason,
            )
            for move in slices_to_move(held, staying)
        )
        return state, Judgement(intents=intents)
