"""From the brokers' health to routes: new ones only where something changed, and nothing that was said is lost."""

import msgspec

from tidegate.loop import sentences
from tidegate.loop.planner import Proposal
from tidegate.model.decisions import Action, Plan, Reason
from tidegate.model.observations import BrokerState
from tidegate.model.routes import Broker, Routes


def route(
    known: Routes | None, brokers: tuple[BrokerState, ...], phase: str, *, in_force: Routes | None = None
) -> tuple[Routes | None, Proposal | None]:
    """New routes where the brokers' health or addresses changed, unless that would leave no broker at all.

    ``known`` are the routes that were decided last, ``in_force`` those that gateways follow now, where that is known:
    an operator may have changed weights in them since.
    """
    said = known if in_force is None else in_force
    wanted = Routes(brokers=tuple(_broker(state, said) for state in brokers))
    healthy = sum(broker.healthy for broker in wanted.brokers)
    if healthy == 0:
        return known, None
    before = said if known is None else known
    if _observed(wanted) == _observed(before):
        return before, None
    reason = Reason(
        measurements={"brokers": float(len(brokers)), "healthy": float(healthy)},
        rule="a broker whose monitoring page does not call it healthy gets no new clients",
        rejected="leave the routes as they are: new clients would wait for a broker that does not answer",
    )
    action = Action(kind="route", arguments=msgspec.to_builtins(wanted), reason=reason)
    return wanted, Proposal(
        plan=Plan(event="broker health changed", actions=(action,)),
        acts=True,
        recorded=True,
        sentence=sentences.routed(known, wanted),
        phase=phase,
    )


def _observed(routes: Routes | None) -> tuple[tuple[str, str, int, bool], ...]:
    """What a broker's monitoring says of it; the rest of a route is what people chose."""
    return tuple((one.name, one.host, one.port, one.healthy) for one in routes.brokers) if routes else ()


def _broker(state: BrokerState, said: Routes | None) -> Broker:
    """Health and address follow what was observed; weight and abilities stay as they were said."""
    host, _, port = state.address.rpartition(":")
    before = next((broker for broker in said.brokers if broker.name == state.name), None) if said else None
    if before is None:
        return Broker(name=state.name, host=host, port=int(port), healthy=state.healthy)
    return msgspec.structs.replace(before, host=host, port=int(port), healthy=state.healthy)
