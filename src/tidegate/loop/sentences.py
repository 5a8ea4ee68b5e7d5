"""What an action does, in the words that come before "because"."""

from collections.abc import Mapping

from tidegate.loop.knowledge import Knowledge
from tidegate.model.actions import Action, Advise, MoveSlices, Reconfigure, Route, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.intents import Algorithm, Count, Listener, Owner, Pace, Value
from tidegate.model.routes import Routes
from tidegate.model.view import seconds


def sentence(action: Action, knowledge: Knowledge, because: str) -> str:
    return f"{_what(action, knowledge)} because {because}."


def value(resource: str, wanted: Value) -> str:
    """A wanted value, for a person."""
    match wanted:
        case Pace(interval_s=interval_s, dead_band=dead_band):
            every = "their default" if not interval_s else f"every {seconds(interval_s)}"
            return f"{resource} {every}" if dead_band <= 1 else f"{resource} changes {dead_band:.2g} times as large"
        case Count(nodes=nodes):
            return f"{nodes} processing nodes"
        case Owner(node=node):
            return f"{resource} at {node}"
        case Listener(broker=broker):
            return f"{resource} {'in use' if broker.healthy else 'not in use'}"
        case Algorithm():
            return f"{resource} {_algorithm(wanted)}"


def _what(action: Action, knowledge: Knowledge) -> str:
    match action:
        case Advise(advice=advice):
            return _advised(advice, round(knowledge.chain.get("devices", 0.0)))
        case ScaleNodes(nodes_wanted=wanted):
            chain = knowledge.chain
            return _scaled(wanted, round(chain.get("nodes_working", 0.0) + chain.get("nodes_starting", 0.0)))
        case MoveSlices(takers=takers):
            return _moved(takers)
        case Route(routes=routes):
            return f"New clients go to {_healthy(routes)}"
        case Reconfigure(policies=policies):
            each = ", ".join(f"{name} {_algorithm(chosen)}" for name, chosen in sorted(policies.items()))
            return f"Policies change ({each})"


def _algorithm(chosen: Algorithm) -> str:
    options = ", ".join(f"{name} {value}" for name, value in chosen.options.items())
    name = chosen.name or "as configured"
    return f"{name} with {options}" if options else name


def _advised(advice: Advice, devices: int) -> str:
    held = {name: f"every {seconds(one)}" for name, one in advice.classes.items() if one > 0}
    held |= {name: f"changes {band:.2g} times as large" for name, band in advice.dead_bands.items() if band > 1}
    if advice.interval_s == 0 and not held:
        return "Devices return to their default"
    if held:
        each = ", ".join(f"{name} {what}" for name, what in sorted(held.items()))
        return f"Devices are asked to send less often ({each})"
    who = f"{devices:,} devices" if devices else "Devices"
    return f"{who} are asked to send every {seconds(advice.interval_s)}"


def _scaled(wanted: int, running: int) -> str:
    word = "more are wanted" if wanted > running else "fewer are wanted" if wanted < running else "all are wanted"
    nodes = "processing node" if wanted == 1 else "processing nodes"
    return f"{wanted} {nodes} shall run ({running} run: {word})"


def _moved(takers: Mapping[int, str]) -> str:
    each = ", ".join(f"slice {number} to {taker}" for number, taker in sorted(takers.items()))
    return f"Slices move ({each})"


def _healthy(routes: Routes) -> str:
    return ", ".join(broker.name for broker in routes.brokers if broker.healthy)
