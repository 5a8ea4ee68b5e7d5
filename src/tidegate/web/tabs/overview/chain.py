"""The chain from devices to tables as five stations, each with the one or two numbers that matter, and its alarms."""

from tidegate.model.observations import BrokerState, GatewayState, NodeState
from tidegate.model.view import AGE_S_CAUTION, Sample, View, seconds
from tidegate.web.components.stations import Station
from tidegate.web.values.asked import told_of
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.words import UNKNOWN, number


def stations(view: View, rates: PublishRates) -> tuple[Station, ...]:
    """Devices, gateway, brokers, Spark, tables. A part that does not run is shown as such, not left out."""
    chain, now = view.chain, view.now
    return (
        _devices(view),
        _gateway(chain.gateways, rates),
        _brokers(chain.brokers, now),
        _spark(chain.nodes, now),
        _tables(now, _rows(chain.nodes)),
    )


def _devices(view: View) -> Station:
    now, told = view.now, told_of(view)
    if now is None:
        return Station(name="Devices", value=UNKNOWN, detail="not measured yet")
    if not told.holds_anybody:
        detail = "send at their default interval"
    elif told.is_the_same_for_all:
        detail = f"asked to send {told.of('')}"
    else:
        detail = "asked to send less, by class"
    return Station(name="Devices", value=f"{number(now.devices)} connected", detail=detail)


def _gateway(gateways: tuple[GatewayState, ...], rates: PublishRates) -> Station:
    name = "Gateway" if len(gateways) < 2 else f"{len(gateways)} gateways"
    if not gateways:
        return Station(name=name, value="none runs", detail="devices reach the brokers directly")
    rate = sum(rates.gateways.values()) if len(rates.gateways) == len(gateways) else None
    connections = sum(gateway.connections for gateway in gateways)
    counts = {
        "held": sum(gateway.held for gateway in gateways),
        "refused so far": sum(sum(gateway.refused.values()) for gateway in gateways),
    }
    details = (f"{number(connections)} connections", *(f"{number(n)} {word}" for word, n in counts.items() if n))
    return Station(name=name, value=f"{number(rate)} msg/s", detail=", ".join(details))


def _brokers(brokers: tuple[BrokerState, ...], now: Sample | None) -> Station:
    waiting = "backlog not measured yet" if now is None else f"backlog {number(now.waiting)}"
    if not brokers:
        return Station(name="Brokers", value=UNKNOWN, detail=waiting)
    healthy = sum(broker.healthy for broker in brokers)
    alarms = tuple(f"{broker.name}: {broker.problem or 'not healthy'}" for broker in brokers if not broker.healthy)
    return Station(name="Brokers", value=f"{healthy} of {len(brokers)} healthy", detail=waiting, alarms=alarms)


def _spark(nodes: tuple[NodeState, ...], now: Sample | None) -> Station:
    rate = f"{number(now.departure_per_s if now else None)} msg/s"
    if not nodes:
        return Station(name="Spark", value=rate, detail="no node has reported", alarms=("no processing node",))
    alive = sum(node.alive for node in nodes)
    alarms = tuple(
        f"{node.name}: {node.problem or 'does not answer'}" for node in nodes if node.problem or not node.alive
    )
    wanted = now.nodes_wanted if now else None
    wanting = f", {wanted} wanted" if wanted is not None and wanted != alive else ""
    return Station(name="Spark", value=rate, detail=f"{alive} of {len(nodes)} nodes alive{wanting}", alarms=alarms)


def _rows(nodes: tuple[NodeState, ...]) -> int | None:
    """What the nodes that live have committed; None where none of them can say."""
    return sum(node.rows for node in nodes if node.alive) if any(node.alive for node in nodes) else None


def _tables(now: Sample | None, rows: int | None) -> Station:
    if now is None:
        return Station(name="Tables", value=UNKNOWN, detail="not measured yet")
    old = (f"older than {seconds(AGE_S_CAUTION)}",) if now.age_s >= AGE_S_CAUTION else ()
    committed = f"{number(rows)} rows committed" if rows is not None else "rows not known"
    return Station(name="Tables", value=f"{seconds(now.age_s)} old", detail=committed, alarms=old)
