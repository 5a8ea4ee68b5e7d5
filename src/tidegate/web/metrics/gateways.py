"""Gateways: their clients, what they hold, their processes, and their classes of devices."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tidegate.model.view import ChainStates
from tidegate.web.metrics.families import add_each, filled


def of_gateways(chain: ChainStates) -> Iterator[Metric]:
    label = ["gateway"]
    connections = GaugeMetricFamily("tidegate_gateway_connections", "Devices connected to this gateway.", labels=label)
    publishes = CounterMetricFamily("tidegate_gateway_publishes", "Messages that devices handed over.", labels=label)
    acknowledged = CounterMetricFamily(
        "tidegate_gateway_acknowledged", "Of those, how many were acknowledged.", labels=label
    )
    advised = CounterMetricFamily("tidegate_gateway_advised", "Advice messages sent to devices.", labels=label)
    refused = CounterMetricFamily(
        "tidegate_gateway_refused", "What the gateway refused, by reason.", labels=["gateway", "reason"]
    )
    admitting = GaugeMetricFamily("tidegate_gateway_admitting", "Clients that wait to be connected.", labels=label)
    overload = GaugeMetricFamily(
        "tidegate_gateway_overload", "How late the gateway itself is: 0 (on time) to 10.", labels=label
    )
    versions = GaugeMetricFamily(
        "tidegate_gateway_clients", "Devices connected, by version of MQTT.", labels=["gateway", "version"]
    )
    for gateway in chain.gateways:
        connections.add_metric([gateway.name], gateway.connections)
        publishes.add_metric([gateway.name], gateway.publishes)
        acknowledged.add_metric([gateway.name], gateway.acknowledged)
        advised.add_metric([gateway.name], gateway.advised)
        admitting.add_metric([gateway.name], gateway.admitting)
        overload.add_metric([gateway.name], gateway.overload)
        add_each(refused, gateway.name, gateway.refused)
        add_each(versions, gateway.name, gateway.versions)
    yield from filled(connections, publishes, acknowledged, advised, admitting, overload, refused, versions)


def of_holds(chain: ChainStates) -> Iterator[Metric]:
    label, reason_label = ["gateway"], ["gateway", "reason"]
    held = GaugeMetricFamily("tidegate_held_publishes", "Messages that wait in this gateway.", labels=label)
    clients = GaugeMetricFamily("tidegate_held_clients", "Clients whose messages wait, by reason.", labels=reason_label)
    so_far = CounterMetricFamily("tidegate_gateway_held", "Messages that ever had to wait.", labels=label)
    dropped = CounterMetricFamily(
        "tidegate_gateway_dropped", "Messages at QoS 0 that were not passed on, by reason.", labels=reason_label
    )
    for gateway in chain.gateways:
        held.add_metric([gateway.name], gateway.held)
        so_far.add_metric([gateway.name], gateway.held_total)
        add_each(clients, gateway.name, gateway.held_clients)
        add_each(dropped, gateway.name, gateway.dropped)
    yield from filled(held, clients, so_far, dropped)


def of_processes(chain: ChainStates) -> Iterator[Metric]:
    """By number, not by process id: the one that takes another's place goes on with its series."""
    label = ["gateway", "process"]
    connections = GaugeMetricFamily("tidegate_process_connections", "Devices that this process serves.", labels=label)
    publishes = CounterMetricFamily("tidegate_process_publishes", "Messages that they handed over.", labels=label)
    cpu = GaugeMetricFamily("tidegate_process_cpu_ratio", "Share of one core that the process uses.", labels=label)
    late = GaugeMetricFamily(
        "tidegate_process_late_seconds", "How late the process's event loop was lately.", labels=label
    )
    replaced = CounterMetricFamily(
        "tidegate_gateway_replaced", "Processes of this gateway that died and were replaced.", labels=["gateway"]
    )
    for gateway in chain.gateways:
        replaced.add_metric([gateway.name], gateway.replaced)
        for one in gateway.processes:
            labels = [gateway.name, str(one.number)]
            connections.add_metric(labels, one.connections)
            publishes.add_metric(labels, one.publishes)
            cpu.add_metric(labels, one.cpu_share)
            late.add_metric(labels, one.late_s)
    yield from filled(connections, publishes, cpu, late, replaced)


def of_classes(chain: ChainStates) -> Iterator[Metric]:
    """By gateway as well: a sum over gateways would fall when one of them begins anew, and that is no reset of all."""
    label = ["gateway", "class"]
    devices = GaugeMetricFamily("tidegate_class_devices", "Devices of this class at this gateway.", labels=label)
    publishes = CounterMetricFamily("tidegate_class_publishes", "Messages that they handed over.", labels=label)
    for gateway in chain.gateways:
        for name, one in gateway.classes.items():
            devices.add_metric([gateway.name, name], one.devices)
            publishes.add_metric([gateway.name, name], one.publishes)
    yield from filled(devices, publishes)
