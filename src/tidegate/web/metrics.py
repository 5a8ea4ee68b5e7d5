"""What Prometheus scrapes: the view in base units, without a label per device.

A value that is not known has no sample: an alert may then ask for its absence, and nobody trusts a false zero.
"""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate.model.tables import TablesState
from tidegate.model.view import ChainStates, Sample, View
from tidegate.web.values.ages import view_age_s

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(view: View, now_s: float) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ViewCollector(lambda: view, lambda: now_s))
    return generate_latest(registry)


class ViewCollector(Collector):
    def __init__(self, view: Callable[[], View], now_s: Callable[[], float]) -> None:
        self._view = view
        self._now_s = now_s

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        view = self._view()
        yield from _of_controller(view, self._now_s())
        if view.now is not None:
            yield from _of_sample(view.now)
            yield from _of_control(view.now, view.chain)
        yield from _of_gateways(view.chain)
        yield from _of_holds(view.chain)
        yield from _of_processes(view.chain)
        yield from _of_classes(view.chain)
        yield from _of_brokers(view.chain)
        yield from _of_nodes(view.chain)
        yield from _of_slices(view.chain)
        if view.chain.tables is not None:
            yield from _of_tables(view.chain.tables)
            yield from _of_maintenance(view.chain.tables, self._now_s())
        yield from _of_ledger(view, self._now_s())


def _of_controller(view: View, now_s: float) -> Iterator[Metric]:
    leads = GaugeMetricFamily(
        "tidegate_leader", "1 where this controller leads, 0 where it follows.", labels=["controller"]
    )
    leads.add_metric([view.controller], view.leader == view.controller)
    yield leads
    acts = view.mode.send_rate == "acting" and not view.mode.frozen
    yield GaugeMetricFamily(
        "tidegate_acting", "1 where plans are carried out, 0 in shadow mode, off or frozen.", value=acts
    )
    yield GaugeMetricFamily("tidegate_alarms", "Alarms that are raised now.", value=len(view.alarms))
    age_s = view_age_s(view, now_s)
    if age_s is not None:
        yield GaugeMetricFamily(
            "tidegate_view_age_seconds", "Age of the newest measurement behind all these values.", value=age_s
        )


def _of_sample(now: Sample) -> Iterator[Metric]:
    gauges = (
        ("tidegate_data_age_seconds", "Age of the oldest message that the tables lack.", now.age_s),
        ("tidegate_backlog_messages", "Messages that brokers acknowledged and the tables lack.", now.waiting),
        ("tidegate_arrival_messages_per_second", "Messages that arrive at the brokers.", now.arrival_per_s),
        ("tidegate_departure_messages_per_second", "Messages that reach the tables.", now.departure_per_s),
        ("tidegate_devices_connected", "Devices connected to all gateways.", now.devices),
        (
            "tidegate_capacity_messages_per_second",
            "What the pipeline can take, as far as it is known.",
            now.capacity_per_s,
        ),
        (
            "tidegate_demand_messages_per_second",
            "What devices would send if nobody held them, as far as it is known.",
            now.demand_per_s,
        ),
    )
    for name, words, value in gauges:
        if value is not None:
            yield GaugeMetricFamily(name, words, value=value)


def _of_control(now: Sample, chain: ChainStates) -> Iterator[Metric]:
    advised = GaugeMetricFamily(
        "tidegate_advised_interval_seconds",
        "Least time between two messages that devices (of a class, or all others) are asked for; 0 is their default.",
    )
    advised.add_metric([], now.interval_s)
    for name in sorted({*now.classes, *(name for gateway in chain.gateways for name in gateway.classes)}):
        advised.add_sample(advised.name, {"class": name}, now.classes.get(name, now.interval_s))
    yield advised
    nodes = GaugeMetricFamily(
        "tidegate_processing_nodes", "Processing nodes that work, and how many are wanted.", labels=["state"]
    )
    nodes.add_metric(["working"], now.nodes_working)
    if now.nodes_wanted is not None:
        nodes.add_metric(["wanted"], now.nodes_wanted)
    yield nodes


def _of_gateways(chain: ChainStates) -> Iterator[Metric]:
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
        _add_each(refused, gateway.name, gateway.refused)
        _add_each(versions, gateway.name, gateway.versions)
    yield from _filled(connections, publishes, acknowledged, advised, admitting, overload, refused, versions)


def _of_holds(chain: ChainStates) -> Iterator[Metric]:
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
        _add_each(clients, gateway.name, gateway.held_clients)
        _add_each(dropped, gateway.name, gateway.dropped)
    yield from _filled(held, clients, so_far, dropped)


def _of_processes(chain: ChainStates) -> Iterator[Metric]:
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
    yield from _filled(connections, publishes, cpu, late, replaced)


def _of_classes(chain: ChainStates) -> Iterator[Metric]:
    """By gateway as well: a sum over gateways would fall when one of them begins anew, and that is no reset of all."""
    label = ["gateway", "class"]
    devices = GaugeMetricFamily("tidegate_class_devices", "Devices of this class at this gateway.", labels=label)
    publishes = CounterMetricFamily("tidegate_class_publishes", "Messages that they handed over.", labels=label)
    for gateway in chain.gateways:
        for name, one in gateway.classes.items():
            devices.add_metric([gateway.name, name], one.devices)
            publishes.add_metric([gateway.name, name], one.publishes)
    yield from _filled(devices, publishes)


def _of_brokers(chain: ChainStates) -> Iterator[Metric]:
    healthy = GaugeMetricFamily("tidegate_broker_up", "1 where the broker says it is healthy.", labels=["broker"])
    connections = GaugeMetricFamily("tidegate_broker_connections", "Clients of this broker.", labels=["broker"])
    for broker in chain.brokers:
        healthy.add_metric([broker.name], broker.healthy)
        if broker.healthy:
            connections.add_metric([broker.name], broker.connections)
    yield from _filled(healthy, connections)


def _of_nodes(chain: ChainStates) -> Iterator[Metric]:
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
        _add_each(rejected, node.name, node.rejects)
    yield from _filled(alive, slices, rows, rejected)


def _of_slices(chain: ChainStates) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("tidegate_slice_waiting", "Messages that the tables lack.", labels=["slice"])
    age = GaugeMetricFamily("tidegate_slice_age_seconds", "Age of the oldest of those.", labels=["slice"])
    for one in chain.slices:
        for family, value in ((waiting, one.waiting), (age, one.age_s)):
            if value is not None:
                family.add_metric([str(one.number)], value)
    yield from _filled(waiting, age)


def _of_tables(said: TablesState) -> Iterator[Metric]:
    label = ["table"]
    files = GaugeMetricFamily("tidegate_table_active_files", "Files of the table's newest version.", labels=label)
    entries = GaugeMetricFamily("tidegate_table_log_entries", "Entries of the table's log.", labels=label)
    size = GaugeMetricFamily("tidegate_table_bytes", "Size of the active files.", labels=label)
    rows = GaugeMetricFamily("tidegate_table_rows", "Rows of the active files.", labels=label)
    for name, one in said.tables.items():
        files.add_metric([name], one.active_files)
        entries.add_metric([name], one.log_entries)
        size.add_metric([name], one.bytes)
        rows.add_metric([name], one.rows)
    yield from _filled(files, entries, size, rows)


def _of_maintenance(said: TablesState, now_s: float) -> Iterator[Metric]:
    """Of each table's last round: the maintainer tells only the newest, so there is nothing to count."""
    label = ["table"]
    begun = GaugeMetricFamily(
        "tidegate_maintenance_last_timestamp_seconds", "When the table was maintained last (Unix time).", labels=label
    )
    took = GaugeMetricFamily("tidegate_maintenance_last_seconds", "How long that took.", labels=label)
    failed = GaugeMetricFamily("tidegate_maintenance_last_failed", "1 where that met a problem.", labels=label)
    for name, run in {run.table: run for run in said.runs}.items():
        begun.add_metric([name], run.at_s)
        took.add_metric([name], run.seconds)
        failed.add_metric([name], run.problem is not None)
    yield from _filled(begun, took, failed)
    if said.next_s:
        yield GaugeMetricFamily(
            "tidegate_maintenance_next_timestamp_seconds", "When the next round begins (Unix time).", value=said.next_s
        )
    yield GaugeMetricFamily("tidegate_maintainer_alarms", "Alarms of the maintainer.", value=len(said.alarms))
    yield GaugeMetricFamily(
        "tidegate_maintainer_silent_seconds", "Since the maintainer said something.", value=max(0.0, now_s - said.at_s)
    )


def _of_ledger(view: View, now_s: float) -> Iterator[Metric]:
    """What gateways noted, and what became of it over the hours that the check tells of."""
    label = ["gateway"]
    noted = CounterMetricFamily("tidegate_ledger_noted", "Acknowledged readings noted by identity.", labels=label)
    nameless = CounterMetricFamily("tidegate_ledger_nameless", "Acknowledged without an identity.", labels=label)
    unwatched = CounterMetricFamily(
        "tidegate_ledger_unwatched", "Acknowledged readings that this gateway could not report.", labels=label
    )
    for gateway in view.chain.gateways:
        noted.add_metric([gateway.name], gateway.ledger.noted)
        nameless.add_metric([gateway.name], gateway.ledger.nameless)
        unwatched.add_metric([gateway.name], gateway.ledger.unwatched)
    yield from _filled(noted, nameless, unwatched)
    state = view.completeness
    if state is None:
        return
    readings = GaugeMetricFamily(
        "tidegate_ledger_readings",
        "Readings acknowledged in the last 48 hours, by what became of them.",
        labels=["state"],
    )
    for name in ("acknowledged", "stored", "rejected", "missing", "waiting", "unwatched"):
        readings.add_metric([name], sum(getattr(hour, name) for hour in state.hours))
    yield readings
    yield GaugeMetricFamily(
        "tidegate_ledger_check_age_seconds", "How long ago the tables were last compared.", value=now_s - state.at_s
    )
    yield CounterMetricFamily(
        "tidegate_ledger_reports_lost",
        "Gateways' reports that were gone before they were read.",
        value=state.reports_lost,
    )


def _add_each(family: GaugeMetricFamily | CounterMetricFamily, name: str, counts: Mapping[str, int]) -> None:
    """A sample per reason, or per version: whatever the family's second label is."""
    for kind, count in counts.items():
        family.add_metric([name, kind], count)


def _filled(*families: Metric) -> Iterator[Metric]:
    return (family for family in families if family.samples)
