"""From a verdict to actions: what is new, what is only a renewal, and what may be carried out.

Advice is a lease. While it holds devices back it is renewed at a third of its lifetime, and a renewal is no decision; a
change is one. A change of the interval by less than 2 % is neither.
"""

import msgspec

from tidegate.control.send_rate.policy import Seen, Verdict
from tidegate.loop import sentences
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.decisions import Action, Plan, Reason
from tidegate.model.observations import BrokerState
from tidegate.model.routes import Broker, Routes

SAME_INTERVAL_SHARE = 0.02
# A device hears the next advice with its next message: a lease that is shorter than its interval lapses in between.
LIFETIME_INTERVALS = 3.0


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A plan for the shell. ``acts``: carry it out. ``recorded``: it is a decision, write it down."""

    plan: Plan
    acts: bool
    recorded: bool
    sentence: str
    phase: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The last advice: what it said, whether devices were really told, when it was decided and last renewed."""

    interval_s: float = 0.0
    lifetime_s: float = 0.0
    acted: bool = False
    decided_at_s: float = 0.0
    renewed_at_s: float = 0.0

    def in_force(self, at_s: float) -> float:
        """The interval that devices keep to now; 0 where they keep their default."""
        return self.interval_s if self.acted and at_s < self.renewed_at_s + self.lifetime_s else 0.0


def advise(
    given: Given, seen: Seen, verdict: Verdict, readings: dict[str, float], lifetime_s: float, *, acts: bool
) -> tuple[Given, Proposal | None]:
    """The next advice, if it is due."""
    rate = verdict.rate_per_device
    interval_s = 0.0 if rate is None else min(1.0 / rate, INTERVAL_S_MAX)
    known_s = given.interval_s if given.acted == acts else given.in_force(seen.at_s)
    if _is_same(known_s, interval_s):
        if not acts or given.acted is not acts or not _renewal_due(given, seen.at_s):
            return given, None
        renewed = msgspec.structs.replace(given, renewed_at_s=seen.at_s)
        return renewed, _proposal(renewed, seen, verdict, readings, recorded=False)
    lifetime_s = min(max(lifetime_s, LIFETIME_INTERVALS * interval_s), INTERVAL_S_MAX)
    given = Given(
        interval_s=interval_s, lifetime_s=lifetime_s, acted=acts, decided_at_s=seen.at_s, renewed_at_s=seen.at_s
    )
    return given, _proposal(given, seen, verdict, readings, recorded=True)


def _is_same(before_s: float, after_s: float) -> bool:
    if before_s == 0 or after_s == 0:
        return before_s == after_s
    return abs(after_s - before_s) < SAME_INTERVAL_SHARE * before_s


def _renewal_due(given: Given, at_s: float) -> bool:
    """A withdrawal is repeated for one lifetime; after that no lease of the advice before it can be left."""
    if given.interval_s == 0 and at_s >= given.decided_at_s + given.lifetime_s:
        return False
    return at_s >= given.renewed_at_s + given.lifetime_s / 3


def _proposal(given: Given, seen: Seen, verdict: Verdict, readings: dict[str, float], *, recorded: bool) -> Proposal:
    action = Action(
        kind="advise",
        arguments={"interval_s": given.interval_s, "lifetime_s": given.lifetime_s},
        reason=Reason(readings=readings, rule=verdict.rule, rejected=verdict.rejected),
    )
    return Proposal(
        plan=Plan(event="overload" if seen.overload else "overload resolved", actions=(action,)),
        acts=given.acted,
        recorded=recorded,
        sentence=sentences.advised(given.interval_s, seen, verdict),
        phase=verdict.phase,
    )


def route(known: Routes | None, brokers: tuple[BrokerState, ...], phase: str) -> tuple[Routes | None, Proposal | None]:
    """New routes where the brokers' health or addresses changed, unless that would leave no broker at all."""
    wanted = Routes(brokers=tuple(_broker(state, known) for state in brokers))
    healthy = sum(broker.healthy for broker in wanted.brokers)
    if wanted == known or healthy == 0:
        return known, None
    reason = Reason(
        readings={"brokers": float(len(brokers)), "healthy": float(healthy)},
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


def _broker(state: BrokerState, known: Routes | None) -> Broker:
    host, _, port = state.address.rpartition(":")
    weights = {broker.name: broker.weight for broker in known.brokers} if known else {}
    return Broker(
        name=state.name, host=host, port=int(port), weight=weights.get(state.name, 1.0), healthy=state.healthy
    )
