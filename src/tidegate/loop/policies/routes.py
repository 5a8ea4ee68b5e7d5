"""Which brokers new clients go to: those that are healthy. Nothing that people said of a broker is lost."""

import msgspec

from tidegate.loop.knowledge import Knowledge
from tidegate.loop.policy import Judgement
from tidegate.model.intents import Intent, Listener, Priority, Reason
from tidegate.model.observations import BrokerState
from tidegate.model.routes import Broker, Routes


class RoutesState(msgspec.Struct, frozen=True, kw_only=True):
    """The routes that were wanted last."""

    routes: Routes | None = None


class FollowHealth:
    name = "routes"
    families = ("route",)
    serves = ()
    state_type = RoutesState

    def initial(self) -> RoutesState:
        return RoutesState()

    def step(self, state: RoutesState, knowledge: Knowledge) -> tuple[RoutesState, Judgement | None]:
        # An operator may have changed weights in the routes that gateways follow.
        said = state.routes if knowledge.routes is None else knowledge.routes
        wanted = Routes(brokers=tuple(_broker(broker, said) for broker in knowledge.brokers))
        healthy = sum(broker.healthy for broker in wanted.brokers)
        if healthy == 0:  # that would leave no broker at all
            return state, None
        reason = Reason(
            measurements={"brokers": float(len(wanted.brokers)), "healthy": float(healthy)},
            rule="a broker whose monitoring page does not call it healthy gets no new clients",
            rejected="leave the routes as they are: new clients would wait for a broker that does not answer",
            because=_because(said, wanted),
        )
        intents = tuple(
            Intent(
                resource=f"route/{broker.name}",
                wanted=Listener(broker=broker),
                priority=Priority.PROTECT_CHAIN,
                reason=reason,
            )
            for broker in wanted.brokers
        )
        return RoutesState(routes=wanted), Judgement(intents=intents)


def _broker(state: BrokerState, said: Routes | None) -> Broker:
    """Health and address follow what was observed; weight and abilities stay as they were said."""
    host, _, port = state.address.rpartition(":")
    before = next((broker for broker in said.brokers if broker.name == state.name), None) if said else None
    if before is None:
        return Broker(name=state.name, host=host, port=int(port), healthy=state.healthy)
    return msgspec.structs.replace(before, host=host, port=int(port), healthy=state.healthy)


def _because(before: Routes | None, after: Routes) -> str:
    if before is None or not before.brokers:
        return "these brokers answer"
    was = {broker.name: broker.healthy for broker in before.brokers}
    gone = [broker.name for broker in after.brokers if was.get(broker.name, True) and not broker.healthy]
    back = [broker.name for broker in after.brokers if broker.healthy and not was.get(broker.name, False)]
    changes = [f"{name} is unhealthy" for name in gone] + [f"{name} is healthy" for name in back]
    return " and ".join(changes) or "the brokers' addresses changed"
