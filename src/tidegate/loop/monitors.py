"""From observations to properties by source. What nobody could measure is absent: what is not known is no zero."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from tidegate.loop.knowledge import CHAIN, Properties
from tidegate.loop.window import Window
from tidegate.model.errors import UserError
from tidegate.model.observations import GatewayState, Observation


class Property(NamedTuple):
    name: str
    says: str


PROPERTIES: dict[str, tuple[Property, ...]] = {
    CHAIN: (
        Property("head_age_s", "age of the oldest message that the tables lack"),
        Property("waiting", "messages that the tables lack"),
        Property("held", "publishes that wait in gateways"),
        Property("arrival_per_s", "messages that brokers acknowledge"),
        Property("departure_per_s", "messages that the tables take"),
        Property("devices", "devices that publish"),
        Property("device_rate_per_s", "messages that each of them sends; absent while there is none"),
        Property("nodes_working", "processing nodes that work"),
        Property("nodes_starting", "processing nodes that were asked for and do not work yet"),
        Property("node_rate_per_s", "what one node takes at its limit; absent while none was seen there"),
        Property("busy_share", "share of the nodes' time that was work at their limit"),
        Property("nodes_at_limit", "processing nodes whose newest batch was at its limit"),
        Property("interval_s", "the interval that devices are asked to keep; 0 is their default"),
    ),
    "class": (
        Property("devices", "connected devices of the class"),
        Property("arrival_per_s", "their messages; absent while a gateway has just begun to count them"),
    ),
    "gateway": (
        Property("connections", "connected clients"),
        Property("held", "publishes that wait"),
        Property("admitting", "clients that wait to be connected"),
        Property("overload", "how late it is, 0 to 10"),
    ),
    "broker": (
        Property("healthy", "1 where it is"),
        Property("connections", "connected clients"),
    ),
    "node": (
        Property("working", "1 where it has finished a batch and holds its lease"),
        Property("slices", "that it works on"),
    ),
    "slice": (
        Property("waiting", "messages that the tables lack"),
        Property("age_s", "age of the oldest of them"),
    ),
}


# What people call the sources of a kind.
GROUPS = {f"{kind}s" if kind != "class" else "classes": kind for kind in PROPERTIES if kind != CHAIN}


def names(kind: str = CHAIN) -> tuple[str, ...]:
    return tuple(one.name for one in PROPERTIES[kind])


class Ranges:
    """Operation ranges: the bounds between them, by property: ``head_age_s`` or ``brokers.connections``."""

    def __init__(self, bounds: Mapping[str, tuple[float, ...]]) -> None:
        self._bounds: dict[tuple[str, str], tuple[float, ...]] = {}
        for name, several in bounds.items():
            group, _, known = name.rpartition(".")
            kind = GROUPS.get(group) if group else CHAIN
            if kind is None or known not in names(kind):
                raise UserError(f"{name} is no property: choose one like head_age_s or brokers.connections.")
            if not several or any(before >= after for before, after in pairwise(several)):
                raise UserError(f"{name} has the bounds {list(several)}: name at least one, each above the one before.")
            self._bounds[kind, known] = several

    def levels(self, properties: Mapping[str, Properties], before: Mapping[str, int] | None = None) -> dict[str, int]:
        """In which range each monitored property is, by ``source.property``: 0 is below all bounds. One that is not
        known now is where it was ``before``, for as long as its source is there."""
        levels = {}
        for (kind, name), bounds in self._bounds.items():
            for source, found in properties.items():
                if source.partition("/")[0] != kind:
                    continue
                if name in found:
                    levels[f"{source}.{name}"] = bisect_right(bounds, found[name])
                elif before is not None and f"{source}.{name}" in before:
                    levels[f"{source}.{name}"] = before[f"{source}.{name}"]
        return levels


def measured(observation: Observation, window: Window, interval_s: float) -> dict[str, Properties]:
    """Every property of every source. What is no finite number, or below nothing, is not known."""
    found = _found(observation, window, interval_s)
    return {
        source: {name: value for name, value in known.items() if math.isfinite(value) and value >= 0}
        for source, known in found.items()
    }


def _found(observation: Observation, window: Window, interval_s: float) -> dict[str, Properties]:
    work = window.work()
    found = {
        CHAIN: {
            "head_age_s": observation.head_age_s,
            "waiting": float(observation.waiting),
            "held": float(observation.held),
            "arrival_per_s": window.arrival_per_s(),
            "departure_per_s": window.departure_per_s(),
            "devices": float(observation.devices),
            **_per_device(window.arrival_per_s(), observation.devices),
            "nodes_working": float(sum(node.is_working for node in observation.nodes)),
            "nodes_starting": float(observation.starting),
            **({} if work.node_rate_per_s is None else {"node_rate_per_s": work.node_rate_per_s}),
            "busy_share": work.busy_share,
            "nodes_at_limit": float(window.at_limit()),
            "interval_s": interval_s,
        }
    }
    for name, one in observation.classes.items():
        rate = {"arrival_per_s": work.classes_per_s[name]} if name in work.classes_per_s else {}
        found[f"class/{name}"] = {"devices": float(one.devices), **rate}
    found |= {f"gateway/{gateway.name}": _gateway(gateway) for gateway in observation.gateways}
    for broker in observation.brokers:
        counted = {} if broker.connections is None else {"connections": float(broker.connections)}
        found[f"broker/{broker.name}"] = {"healthy": float(broker.healthy), **counted}
    for node in observation.nodes:
        found[f"node/{node.name}"] = {"working": float(node.is_working), "slices": float(len(node.slices))}
    for slice_ in observation.slices:
        known = {"waiting": slice_.waiting, "age_s": slice_.age_s}
        found[f"slice/{slice_.number}"] = {name: float(value) for name, value in known.items() if value is not None}
    return found


def _per_device(arrival_per_s: float, devices: int) -> Properties:
    return {"device_rate_per_s": arrival_per_s / devices} if devices > 0 else {}


def _gateway(gateway: GatewayState) -> Properties:
    return {
        "connections": float(gateway.connections),
        "held": float(gateway.held),
        "admitting": float(gateway.admitting),
        "overload": float(gateway.overload),
    }
