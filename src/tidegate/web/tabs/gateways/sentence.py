"""The gateways in a sentence and in a few numbers: what goes through them, and who has to wait."""

from collections.abc import Iterable

from tidegate.web.components.refusals import Gateways
from tidegate.web.components.stations import Station
from tidegate.web.tabs.gateways.tables import OVERLOAD_MAX, total
from tidegate.web.values.gateway_history import Moment, Records
from tidegate.web.values.words import number, rate


def sentence(shown: Gateways, records: Records) -> str:
    """Say like this: 800 clients are connected and hand over 620 msg/s. 400 are held: its own rate 400."""
    return " ".join(f"{part}." for part in (_connected(shown, records), _held(shown), *_trouble(shown)) if part)


def _connected(shown: Gateways, records: Records) -> str:
    connections, per_s = sum(one.connections for one in shown), _in_per_s(shown, records)
    clients, verb = ("1 client is", "hands") if connections == 1 else (f"{number(connections)} clients are", "hand")
    if per_s is None:
        return f"{clients} connected, how much is handed over is not known yet"
    return f"{clients} connected and {verb} over {number(per_s)} msg/s"


def _held(shown: Gateways) -> str:
    reasons, publishes = total(one.held_clients for one in shown), sum(one.held for one in shown)
    if not reasons:
        return "Nobody is held" if not publishes else f"{number(publishes)} publishes are held"
    because = ", ".join(f"{reason} {number(count)}" for reason, count in reasons.most_common())
    verb = "is" if reasons.total() == 1 else "are"
    return f"{number(reasons.total())} {verb} held, because of: {because}"


def _trouble(shown: Gateways) -> Iterable[str]:
    if admitting := sum(one.admitting for one in shown):
        yield f"{number(admitting)} more {'waits' if admitting == 1 else 'wait'} to be connected"
    for one in shown:
        if one.overload:
            yield f"{one.name} is late itself (overload {one.overload} of {OVERLOAD_MAX})"


def tiles(shown: Gateways, records: Records) -> tuple[Station, ...]:
    """The same as numbers, each with what it is made of."""
    refused = _sum(
        None if (known := records[one.name].refused_per_min) is None else sum(known.values())
        for one in shown
        if one.name in records
    )
    return (
        Station(name="Connections", value=number(sum(one.connections for one in shown)), detail=_where(shown)),
        Station(name="In", value=rate(_in_per_s(shown, records)), detail="handed over by devices"),
        Station(name="Acknowledged", value=rate(_acknowledged_per_s(shown, records)), detail="to devices"),
        Station(name="Held", value=f"{number(sum(one.held for one in shown))} publishes", detail=_of_clients(shown)),
        Station(
            name="Refused",
            value=f"{number(refused)} per minute",
            detail=f"{number(sum(sum(one.refused.values()) for one in shown))} so far",
        ),
        _overload(shown),
    )


def _where(shown: Gateways) -> str:
    gateways = "at 1 gateway" if len(shown) == 1 else f"at {len(shown)} gateways"
    admitting = sum(one.admitting for one in shown)
    return f"{gateways}, {number(admitting)} wait to be connected" if admitting else gateways


def _of_clients(shown: Gateways) -> str:
    clients = total(one.held_clients for one in shown).total()
    return f"of {number(clients)} {'client' if clients == 1 else 'clients'}" if clients else "nobody waits"


def _overload(shown: Gateways) -> Station:
    """The latest gateway's, because an average would hide it."""
    level = max((one.overload for one in shown), default=0)
    late = tuple(f"{one.name} is late" for one in shown if one.overload)
    processes = sum(len(one.processes) for one in shown)
    detail = f"{processes} {'process' if processes == 1 else 'processes'}" if processes else "processes not known"
    return Station(name="Overload", value=f"{level} of {OVERLOAD_MAX}", detail=detail, alarms=late)


def _in_per_s(shown: Gateways, records: Records) -> float | None:
    return _sum(moment.in_per_s if moment else None for moment in _now(shown, records))


def _acknowledged_per_s(shown: Gateways, records: Records) -> float | None:
    return _sum(moment.acknowledged_per_s if moment else None for moment in _now(shown, records))


def _now(shown: Gateways, records: Records) -> list[Moment | None]:
    return [records[one.name].now if one.name in records else None for one in shown]


def _sum(values: Iterable[float | None]) -> float | None:
    """Half a sum would pass for the whole, so all of it has to be known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None
