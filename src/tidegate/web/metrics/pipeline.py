"""Brokers, processing nodes and slices."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tidegate.model.view import ChainStates
from tidegate.web.metrics.families import add_each, filled


def of_brokers(chain: ChainStates) -> Iterator[Metric]:
    healthy = GaugeMetricFamily("tidegate_broker_up", "1 where the broker says it is healthy.", labels=["broker"])
    connections = GaugeMetricFamily("tidegate_broker_connections", "Clients of this broker.", labels=["broker"])
    for broker in chain.brokers:
        healthy.add_metric([broker.name], broker.healthy)
        if broker.connections is not None:
            connections.add_metric([broker.name], broker.connections)
    yield from filled(healthy, connections)


def of_nodes(chain: ChainStates) -> Iterator[Metric]:
    alive = GaugeMetricFamily("tidegate_node_up", "1 where the processing node's lease is alive.", labels=["node"])
    slices = GaugeMetricFamily("tidegate_node_slices", "Slices that the processing node works on.", labels=["node"])
    rows = CounterMetricFamily(
        "tidegate_node_rows", "Rows the processing node committed since it started.", labels=["node"]
    )
    rejected = CounterMetricFamily(
        "tidegate_node_rejected", "Readings that the processing node refused, by reason.", labels=["node", "reason"]
    )
    for node in chain.nodes:
        alive.add_metric([node.name], node.alive)
        slices.add_metric([node.name], len(node.slices))
        rows.add_metric([node.name], node.rows)
        add_each(rejected, node.name, node.rejects)
    yield from filled(alive, slices, rows, rejected)


def of_slices(chain: ChainStates) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("tidegate_slice_waiting", "Messages that the tables lack.", labels=["slice"])
    age = GaugeMetricFamily("tidegate_slice_age_seconds", "Age of the oldest of those.", labels=["slice"])
    for one in chain.slices:
        for family, value in ((waiting, one.waiting), (age, one.age_s)):
            if value is not None:
                family.add_metric([str(one.number)], value)
    yield from filled(waiting, age)
