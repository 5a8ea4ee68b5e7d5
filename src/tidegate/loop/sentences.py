"""What was decided and why, in one sentence for a person."""

from collections.abc import Mapping

from tidegate.control.policy import Seen, Verdict
from tidegate.model.routes import Routes
from tidegate.model.view import seconds


def advised(interval_s: float, classes: Mapping[str, float], seen: Seen, verdict: Verdict) -> str:
    held = {name: f"every {seconds(one)}" for name, one in classes.items() if one > 0}
    held |= {name: f"changes {band:.2g} times as large" for name, band in verdict.dead_bands.items() if band > 1}
    if interval_s == 0 and not held:
        return f"Devices return to their default because {_calm(verdict)}."
    if verdict.phase == "recover":
        because = f"data is {seconds(seen.head_age_s)} old again and the rate may grow"
    elif verdict.capacity_per_s is None:
        because = f"data is {seconds(seen.head_age_s)} old and what Spark can take is not known yet"
    else:
        because = f"data is {seconds(seen.head_age_s)} old and Spark takes {verdict.capacity_per_s:,.0f} msg/s"
    if held:
        each = ", ".join(f"{name} {what}" for name, what in sorted(held.items()))
        return f"Devices are asked to send less often ({each}) because {because}."
    who = f"{seen.devices:,} devices" if seen.devices else "Devices"
    return f"{who} are asked to send every {seconds(interval_s)} because {because}."


def scaled(wanted: int, running: int, seen: Seen, verdict: Verdict) -> str:
    demand = seen.arrival_per_s if verdict.demand_per_s is None else verdict.demand_per_s
    word = "more are wanted" if wanted > running else "fewer are wanted" if wanted < running else "all are wanted"
    change = f"{running} run: {word}"
    each = f", one takes {seen.node_rate_per_s:,.0f}" if seen.node_rate_per_s else ""
    nodes = "processing node" if wanted == 1 else "processing nodes"
    return f"{wanted} {nodes} shall run ({change}) because devices want to send {demand:,.0f} msg/s{each}."


def moved(moves: Mapping[int, str]) -> str:
    each = ", ".join(f"slice {number} to {taker}" for number, taker in sorted(moves.items()))
    return f"Slices move ({each}) because the processing nodes changed."


def _calm(verdict: Verdict) -> str:
    return "the default rate is reached without an overload" if verdict.phase == "idle" else verdict.rule


def routed(before: Routes | None, after: Routes) -> str:
    if before is None:
        return f"New clients go to {_healthy(after)} because these brokers answer."
    was = {broker.name: broker.healthy for broker in before.brokers}
    gone = [broker.name for broker in after.brokers if was.get(broker.name, True) and not broker.healthy]
    back = [broker.name for broker in after.brokers if broker.healthy and not was.get(broker.name, False)]
    changes = [f"{name} is unhealthy" for name in gone] + [f"{name} is healthy" for name in back]
    why = " and ".join(changes) or "the brokers' addresses changed"
    return f"New clients go to {_healthy(after)} because {why}."


def _healthy(routes: Routes) -> str:
    return ", ".join(broker.name for broker in routes.brokers if broker.healthy)
