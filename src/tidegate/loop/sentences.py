"""What was decided and why, in one sentence for a person."""

from tidegate.control.send_rate.policy import Seen, Verdict
from tidegate.model.routes import Routes
from tidegate.model.view import seconds


def advised(interval_s: float, seen: Seen, verdict: Verdict) -> str:
    if interval_s == 0:
        return f"Devices return to their default because {_calm(verdict)}."
    if verdict.phase == "recover":
        because = f"data is {seconds(seen.head_age_s)} old again and the rate may grow"
    elif verdict.capacity_per_s is None:
        because = f"data is {seconds(seen.head_age_s)} old and what Spark can take is not known yet"
    else:
        because = f"data is {seconds(seen.head_age_s)} old and Spark takes {verdict.capacity_per_s:,.0f} msg/s"
    who = f"{seen.devices:,} devices" if seen.devices else "Devices"
    return f"{who} are asked to send every {seconds(interval_s)} because {because}."


def _calm(verdict: Verdict) -> str:
    return "the default rate is reached without an overload" if verdict.phase == "idle" else verdict.rule


def routed(before: Routes | None, after: Routes) -> str:
    if before is None:
        return f"New clients go to {_healthy(after)} because these brokers answer."
    was = {broker.name: broker.healthy for broker in before.brokers}
    gone = [broker.name for broker in after.brokers if was.get(broker.name, True) and not broker.healthy]
    back = [broker.name for broker in after.brokers if broker.healthy and not was.get(broker.name, False)]
    changes = [f"{name} fell ill" for name in gone] + [f"{name} is well" for name in back]
    why = " and ".join(changes) or "the brokers' addresses changed"
    return f"New clients go to {_healthy(after)} because {why}."


def _healthy(routes: Routes) -> str:
    return ", ".join(broker.name for broker in routes.brokers if broker.healthy)
