"""How many processing nodes run: as many as the send-rate algorithm has found to be needed, where it looks for that.

Published and own algorithms decide on rates and nodes with one state, because each changes what the other sees. What
they say of the nodes is wanted here, so that an operator can let nodes be scaled without letting devices be held, and
the other way round.
"""

import msgspec

from tidegate.loop.knowledge import Finding, Knowledge
from tidegate.loop.policy import Judgement
from tidegate.model.intents import Count, Intent, Priority, Reason


class NodesState(msgspec.Struct, frozen=True, kw_only=True):
    """The number that was wanted last; None where nobody wants any."""

    wanted: int | None = None


class NodeCount:
    name = "nodes"
    families = ("nodes",)
    serves = ()
    state_type = NodesState

    def initial(self) -> NodesState:
        return NodesState()

    def step(self, state: NodesState, knowledge: Knowledge) -> tuple[NodesState, Judgement | None]:
        said = knowledge.findings.get("send-rate")
        if said is None:
            return state, None
        if "nodes_wanted" not in said.found:
            return NodesState(), Judgement()
        wanted = round(said.found["nodes_wanted"])
        reason = Reason(
            measurements=knowledge.chain, rule=said.rule, rejected=said.rejected, because=_because(knowledge, said)
        )
        intent = Intent(resource="nodes", wanted=Count(nodes=wanted), priority=Priority.MEET_TARGETS, reason=reason)
        return NodesState(wanted=wanted), Judgement(intents=(intent,), finding=said)


def _because(knowledge: Knowledge, said: Finding) -> str:
    chain = knowledge.chain
    demand = said.found.get("demand_per_s", chain["arrival_per_s"])
    each = f", one takes {chain['node_rate_per_s']:,.0f}" if chain.get("node_rate_per_s") else ""
    return f"devices want to send {demand:,.0f} msg/s{each}"
