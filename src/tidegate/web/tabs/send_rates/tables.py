"""Send-rate control in rows, pure: each class of devices, what is done with them and why, the values behind it."""

from collections import Counter

from tidegate.model.view import Sample, View
from tidegate.web.components.table import Table, value_table
from tidegate.web.values.asked import Asked, asked_of
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.words import MODE_SENTENCES, NOTHING_MEASURED, UNKNOWN, mode_word, number, rate, shown_phase

# How much devices may send in each phase, and why.
PHASE_SENTENCES = {
    "idle": "as much as devices like, because Spark can take it.",
    "protect": "no more than Spark takes, because data is too old.",
    "recover": "a little more with every step, because data is fresh again.",
    "no evidence": "no processing node was seen at its limit yet, so what Spark can take is not known.",
    "hold": "what Spark can take, shared among all devices.",
    "drain": "less than Spark takes, so that the backlog shrinks.",
    "probe": "a little more than the estimate, to see whether Spark takes it.",
    "overload": "data is too old, and this policy holds nobody.",
    "off": "nobody decides how much devices send.",
}


def classes(view: View, rates: PublishRates) -> Table:
    """One row per class of devices; devices that have not shown theirs yet stand in a row of their own."""
    asked, now, devices = asked_of(view), view.now, _devices(view)
    rows = [
        (name, number(count), number(rates.classes.get(name)), asked.of(name))
        for name, count in sorted(devices.items())
    ]
    if now is not None and not devices:
        rows = [("all", number(now.devices), number(now.arrival_per_s), asked.of(""))]
    elif now is not None and now.devices > devices.total():
        rows.append(("not known yet", number(now.devices - devices.total()), UNKNOWN, asked.of("")))
    return Table(
        columns=("Class", "Devices", "msg/s", "Advised interval" if asked.is_told else "Would be advised"),
        numeric=frozenset({"Devices", "msg/s"}),
        rows=tuple(rows),
        empty=NOTHING_MEASURED,
    )


def _devices(view: View) -> Counter[str]:
    found: Counter[str] = Counter()
    for gateway in view.chain.gateways:
        found.update({name: one.devices for name, one in gateway.classes.items()})
    return found


def control(view: View) -> Table:
    """Which phase the policy is in and what the mode makes of it, each with what it means."""
    mode = mode_word(view.mode)
    phase = view.now.phase if view.now else ""
    rows = [("Mode", f"{mode.capitalize()}: {_lower(MODE_SENTENCES[mode])}")] if mode in MODE_SENTENCES else []
    if phase:
        meaning = PHASE_SENTENCES.get(phase)
        word = shown_phase(view.mode, phase).capitalize()
        rows.insert(0, ("Phase", f"{word}: {meaning}" if meaning else word))
    return Table(columns=("Control", "Now"), rows=tuple(rows))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def values(view: View) -> Table:
    now = view.now
    if now is None:
        return value_table()
    return value_table(
        ("Demand", "not known" if now.demand_per_s is None else rate(now.demand_per_s)),
        ("Arriving", rate(now.arrival_per_s)),
        ("Processed", rate(now.departure_per_s)),
        ("Capacity", rate(now.capacity_per_s)),
        ("Backlog", f"{number(now.waiting)} msg"),
        ("Held in gateways", f"{number(sum(gateway.held for gateway in view.chain.gateways))} msg"),
        ("Processing nodes", nodes(now, asked_of(view))),
        ("Devices", number(now.devices)),
    )


def nodes(now: Sample, asked: Asked) -> str:
    if now.nodes_wanted is None:
        return f"{now.nodes_working} working"
    return f"{now.nodes_working} working, {now.nodes_wanted} {'' if asked.is_told else 'would be '}wanted"
