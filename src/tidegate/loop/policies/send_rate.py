"""How often devices send. Algorithms that also say how many processing nodes shall run tell the policy of these."""

from typing import Any, Generic

import msgspec

from tidegate.control.policy import ClassSeen, PolicyState, Seen, SendRatePolicy, Verdict
from tidegate.loop.events import OVERLOAD
from tidegate.loop.families import dead_band_of, interval_of, paces
from tidegate.loop.knowledge import Finding, Knowledge
from tidegate.loop.policy import Judgement
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.intents import EVERYBODY, Intent, Pace, Priority, Reason
from tidegate.model.view import seconds

# What every algorithm is shown: where one of these is not known, nobody can say anything.
NEEDED = frozenset({"waiting", "held", "head_age_s", "devices", "nodes_starting"})


class SendRate(Generic[PolicyState]):
    """Any send-rate algorithm as a policy of the loop."""

    name = "send-rate"
    families = ("send-rate",)
    serves = ("nodes",)

    def __init__(self, algorithm: SendRatePolicy[PolicyState], lifetime_s: float) -> None:
        self._algorithm, self._lifetime_s = algorithm, lifetime_s

    @property
    def state_type(self) -> type[PolicyState]:
        return self._algorithm.state_type

    def initial(self) -> PolicyState:
        return self._algorithm.initial()

    def step(self, state: PolicyState, knowledge: Knowledge) -> tuple[PolicyState, Judgement | None]:
        if not knowledge.complete or not knowledge.chain.keys() >= NEEDED:
            return state, None
        seen = seen_of(knowledge)
        after, verdict = self._algorithm.step(state, seen)
        found = {name: getattr(verdict, name) for name in ("capacity_per_s", "demand_per_s", "nodes_wanted")}
        finding = Finding(
            phase=verdict.phase,
            found={name: float(value) for name, value in found.items() if value is not None},
            rule=verdict.rule,
            rejected=verdict.rejected,
        )
        return after, Judgement(intents=tuple(self._paces(knowledge, seen, verdict)), finding=finding)

    def _paces(self, knowledge: Knowledge, seen: Seen, verdict: Verdict) -> list[Intent]:
        wanted = {name: Pace(interval_s=_interval_s(rate)) for name, rate in verdict.classes.items()}
        for name, band in verdict.dead_bands.items():
            wanted[name] = msgspec.structs.replace(wanted.get(name, Pace()), dead_band=band)
        wanted[EVERYBODY] = Pace(interval_s=_interval_s(verdict.rate_per_device))
        held = any(pace.holds for pace in wanted.values())
        reason = Reason(
            measurements=knowledge.chain,
            rule=verdict.rule,
            rejected=verdict.rejected,
            because=_because(seen, verdict, held=held),
        )
        return [
            Intent(
                resource=f"send-rate/{name}",
                wanted=pace,
                priority=Priority.PROTECT_CHAIN,
                reason=reason,
                lifetime_s=self._lifetime_s,
            )
            for name, pace in wanted.items()
        ]


def _interval_s(rate: float | None) -> float:
    return 0.0 if rate is None else min(1.0 / rate, INTERVAL_S_MAX)


def _because(seen: Seen, verdict: Verdict, *, held: bool) -> str:
    old = f"data is {seconds(seen.head_age_s)} old"
    if not held:
        return "the default rate is reached without an overload" if verdict.phase == "idle" else verdict.rule
    if verdict.phase == "recover":
        return f"{old} again and the rate may grow"
    if verdict.capacity_per_s is None:
        return f"{old} and what Spark can take is not known yet"
    return f"{old} and Spark takes {verdict.capacity_per_s:,.0f} msg/s"


def seen_of(knowledge: Knowledge) -> Seen:
    """What a send-rate algorithm is shown."""
    chain, in_force = knowledge.chain, paces(knowledge.kept_to("send-rate"))
    classes = [name for name in in_force if name != EVERYBODY]
    return Seen(
        at_s=knowledge.at_s,
        measured_at_s=knowledge.measured_at_s,
        overload=OVERLOAD in knowledge.events,
        waiting=round(chain["waiting"]),
        held=round(chain["held"]),
        head_age_s=chain["head_age_s"],
        arrival_per_s=chain["arrival_per_s"],
        departure_per_s=chain["departure_per_s"],
        devices=round(chain["devices"]),
        nodes_working=round(chain["nodes_working"]),
        nodes_starting=round(chain["nodes_starting"]),
        node_rate_per_s=chain.get("node_rate_per_s"),
        busy_share=chain["busy_share"],
        classes=tuple(
            ClassSeen(name=name, devices=round(one["devices"]), arrival_per_s=one.get("arrival_per_s"))
            for name, one in knowledge.group("class").items()
            if "devices" in one
        ),
        interval_s=interval_of(in_force, EVERYBODY),
        intervals_s={name: interval_of(in_force, name) for name in classes if in_force[name].interval_s is not None},
        dead_bands={name: dead_band_of(in_force, name) for name in classes if in_force[name].dead_band > 1},
    )


AnySendRate = SendRate[Any]
