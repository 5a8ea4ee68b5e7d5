"""The state of send-rate control in words: what devices want, what Spark can take, and what is asked of whom."""

from tidegate.model.view import Sample, View
from tidegate.web.values.asked import Asked, asked_of, others_of
from tidegate.web.values.words import NOTHING_MEASURED, number


def sentence(view: View) -> str:
    """Say like this: Devices want to send 1,600 msg/s, Spark can take 500. 800 devices are asked to send every 2 s."""
    now, asked = view.now, asked_of(view)
    if now is None:
        return NOTHING_MEASURED
    return " ".join(f"{part}." for part in (_rates(now), _request(view, now, asked), _nodes(now, asked)) if part)


def _rates(now: Sample) -> str:
    if now.demand_per_s is None:
        sent = f"{number(now.arrival_per_s)} msg/s arrive"
    else:
        sent = f"Devices want to send {number(now.demand_per_s)} msg/s"
    if now.capacity_per_s is None:
        return f"{sent}, what Spark can take is not known yet"
    return f"{sent}, Spark can take {number(now.capacity_per_s)}"


def _request(view: View, now: Sample, asked: Asked) -> str:
    verb, why = ("are", "") if asked.is_told else ("would be", ", but nobody is told (shadow)")
    if not asked.holds_anybody:
        return f"Nobody {'is' if asked.is_told else 'would be'} held" + _why_not(view)
    if asked.is_the_same_for_all:
        return f"{number(now.devices)} devices {verb} asked to send {asked.of('')}{why}"
    held = [name for name in (*asked.classes, *asked.dead_bands) if asked.of(name) != "default"]
    each = [f"{name} {asked.of(name)}" for name in sorted(held)]
    if asked.interval_s > 0:
        each.append(f"{others_of(view, (*asked.classes, *asked.dead_bands))} {asked.of('')}")
    return f"Devices {verb} asked to send less: {', '.join(each)}{why}"


def _why_not(view: View) -> str:
    if view.mode.frozen:
        return ": all acting is frozen"
    return {"off": ": protection is off", "shadow": " (shadow: nobody is told)"}.get(view.mode.send_rate, "")


def _nodes(now: Sample, asked: Asked) -> str:
    wanted = now.nodes_wanted
    if wanted is None or wanted == now.nodes_working:
        return ""
    work = "1 processing node works" if now.nodes_working == 1 else f"{now.nodes_working} processing nodes work"
    verb = ("is" if wanted == 1 else "are") if asked.is_told else "would be"
    return f"{work}, {wanted} {verb} wanted"
