"""The controller, what it measures of the whole installation, and what it asks for."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from tidegate.model.view import ChainStates, Sample, View
from tidegate.web.values.ages import view_age_s


def of_controller(view: View, now_s: float) -> Iterator[Metric]:
    leads = GaugeMetricFamily(
        "tidegate_leader", "1 where this controller leads, 0 where it follows.", labels=["controller"]
    )
    leads.add_metric([view.controller], view.leader == view.controller)
    yield leads
    acts = view.mode.send_rate == "acting" and not view.mode.frozen
    yield GaugeMetricFamily(
        "tidegate_acting", "1 where plans are carried out, 0 in shadow mode, off or frozen.", value=acts
    )
    events = GaugeMetricFamily("tidegate_event_active", "1 while an event is under way.", labels=["event"])
    for name, active in sorted(view.rules.events.items()):
        events.add_metric([name], active)
    yield events
    stuck = sum(rule.plan == "stuck" for rule in view.rules.rules)
    yield GaugeMetricFamily("tidegate_plans_stuck", "Plans of rules that are stuck.", value=stuck)
    yield GaugeMetricFamily("tidegate_withheld", "What is wanted now and not done.", value=len(view.withheld))
    yield GaugeMetricFamily("tidegate_alarms", "Alarms that are raised now.", value=len(view.alarms))
    age_s = view_age_s(view, now_s)
    if age_s is not None:
        yield GaugeMetricFamily(
            "tidegate_view_age_seconds", "Age of the newest measurement behind all these values.", value=age_s
        )


def of_sample(now: Sample) -> Iterator[Metric]:
    gauges = (
        ("tidegate_data_age_seconds", "Age of the oldest message that the tables lack.", now.age_s),
        ("tidegate_backlog_messages", "Messages that brokers acknowledged and the tables lack.", now.waiting),
        ("tidegate_arrival_messages_per_second", "Messages that arrive at the brokers.", now.arrival_per_s),
        ("tidegate_departure_messages_per_second", "Messages that reach the tables.", now.departure_per_s),
        ("tidegate_devices_connected", "Devices that publish, at all gateways.", now.devices),
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


def of_control(now: Sample, chain: ChainStates) -> Iterator[Metric]:
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
