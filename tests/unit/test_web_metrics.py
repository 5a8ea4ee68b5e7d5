"""The metrics as Prometheus reads them: its own parser is the judge."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from tidegate.model.decisions import Mode
from tidegate.model.ledger import CompletenessState, HourSums, LedgerCounts
from tidegate.model.observations import BrokerState, ClassState, GatewayState, NodeState, ProcessState, SliceState
from tidegate.model.tables import MaintenanceRun, TableHealth, TablesState
from tidegate.model.view import ChainStates, Sample, View
from tidegate.web.metrics.exposition import exposition

NOW = Sample(
    at_s=100.0,
    age_s=1.25,
    arrival_per_s=480.0,
    departure_per_s=500.0,
    waiting=620,
    devices=800,
    interval_s=1.6,
    capacity_per_s=500.0,
    phase="protect",
    demand_per_s=1600.0,
    nodes_working=1,
    nodes_wanted=3,
    classes={"alarm": 0.0},
)
GATEWAY = GatewayState(
    name='gate"way',
    address="h:1883",
    measured_at_s=99.5,
    connections=800,
    publishes=5000,
    acknowledged=4990,
    advised=120,
    refused={"packet too large": 3},
    held=9,
    held_clients={"its own rate": 4},
    held_total=70,
    dropped={"too much waits": 2},
    admitting=6,
    versions={"5": 300, "3.1.1": 500},
    overload=3,
    processes=(
        ProcessState(number=1, pid=411, connections=390, publishes=2400, cpu_share=0.35, late_s=0.004),
        ProcessState(number=2, pid=412, connections=410, publishes=2600, cpu_share=0.5, late_s=0.02, draining=True),
    ),
    replaced=1,
    classes={"alarm": ClassState(devices=8, publishes=40), "telemetry": ClassState(devices=790, publishes=4960)},
    ledger=LedgerCounts(noted=4800, reported=4700, nameless=150, unwatched=6),
)
CHECKED = CompletenessState(
    checker="m",
    at_s=98.0,
    hours=(
        HourSums(hour_s=-3600.0, acknowledged=20, stored=18, rejected=1, missing=1),
        HourSums(hour_s=0.0, acknowledged=30, stored=25, unwatched=4),
    ),
    reports_lost=2,
)
VIEW = View(
    name="pump-house",
    controller="c2",
    leader="c1",
    mode=Mode(),
    samples=(NOW,),
    decisions=(),
    chain=ChainStates(
        gateways=(GATEWAY,),
        brokers=(
            BrokerState(name="b1", address="h:1", healthy=True, connections=400),
            BrokerState(name="b2", address="h:2", healthy=False),
        ),
        nodes=(
            NodeState(name="n1", alive=True, slices=(0, 1, 2), rows=4400),
            NodeState(name="n2", alive=False, slices=(), rows=70),
        ),
    ),
    alarms=("b2 does not answer",),
    completeness=CHECKED,
)


def scraped(view: View, now_s: float = 103.0) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(exposition(view, now_s).decode())
        for sample in family.samples
    }


def test_every_value_is_there_in_base_units() -> None:
    assert scraped(VIEW) == {
        ("tidegate_leader", ("c2",)): 0,
        ("tidegate_acting", ()): 1,
        ("tidegate_plans_stuck", ()): 0,
        ("tidegate_withheld", ()): 0,
        ("tidegate_alarms", ()): 1,
        ("tidegate_view_age_seconds", ()): 3,
        ("tidegate_data_age_seconds", ()): 1.25,
        ("tidegate_backlog_messages", ()): 620,
        ("tidegate_arrival_messages_per_second", ()): 480,
        ("tidegate_departure_messages_per_second", ()): 500,
        ("tidegate_devices_connected", ()): 800,
        ("tidegate_advised_interval_seconds", ()): 1.6,
        ("tidegate_advised_interval_seconds", ("alarm",)): 0,
        ("tidegate_advised_interval_seconds", ("telemetry",)): 1.6,
        ("tidegate_capacity_messages_per_second", ()): 500,
        ("tidegate_demand_messages_per_second", ()): 1600,
        ("tidegate_processing_nodes", ("working",)): 1,
        ("tidegate_processing_nodes", ("wanted",)): 3,
        ("tidegate_held_publishes", ('gate"way',)): 9,
        ("tidegate_held_clients", ('gate"way', "its own rate")): 4,
        ("tidegate_gateway_held_total", ('gate"way',)): 70,
        ("tidegate_gateway_dropped_total", ('gate"way', "too much waits")): 2,
        ("tidegate_gateway_admitting", ('gate"way',)): 6,
        ("tidegate_gateway_overload", ('gate"way',)): 3,
        ("tidegate_gateway_clients", ('gate"way', "5")): 300,
        ("tidegate_gateway_clients", ('gate"way', "3.1.1")): 500,
        ("tidegate_gateway_replaced_total", ('gate"way',)): 1,
        ("tidegate_process_connections", ('gate"way', "1")): 390,
        ("tidegate_process_connections", ('gate"way', "2")): 410,
        ("tidegate_process_publishes_total", ('gate"way', "1")): 2400,
        ("tidegate_process_publishes_total", ('gate"way', "2")): 2600,
        ("tidegate_process_cpu_ratio", ('gate"way', "1")): 0.35,
        ("tidegate_process_cpu_ratio", ('gate"way', "2")): 0.5,
        ("tidegate_process_late_seconds", ('gate"way', "1")): 0.004,
        ("tidegate_process_late_seconds", ('gate"way', "2")): 0.02,
        ("tidegate_class_devices", ("alarm", 'gate"way')): 8,
        ("tidegate_class_devices", ("telemetry", 'gate"way')): 790,
        ("tidegate_class_publishes_total", ("alarm", 'gate"way')): 40,
        ("tidegate_class_publishes_total", ("telemetry", 'gate"way')): 4960,
        ("tidegate_gateway_connections", ('gate"way',)): 800,
        ("tidegate_gateway_publishes_total", ('gate"way',)): 5000,
        ("tidegate_gateway_acknowledged_total", ('gate"way',)): 4990,
        ("tidegate_gateway_advised_total", ('gate"way',)): 120,
        ("tidegate_gateway_refused_total", ('gate"way', "packet too large")): 3,
        ("tidegate_broker_up", ("b1",)): 1,
        ("tidegate_broker_up", ("b2",)): 0,
        ("tidegate_broker_connections", ("b1",)): 400,
        ("tidegate_node_up", ("n1",)): 1,
        ("tidegate_node_up", ("n2",)): 0,
        ("tidegate_node_slices", ("n1",)): 3,
        ("tidegate_node_slices", ("n2",)): 0,
        ("tidegate_node_rows_total", ("n1",)): 4400,
        ("tidegate_node_rows_total", ("n2",)): 70,
        ("tidegate_ledger_noted_total", ('gate"way',)): 4800,
        ("tidegate_ledger_nameless_total", ('gate"way',)): 150,
        ("tidegate_ledger_unwatched_total", ('gate"way',)): 6,
        ("tidegate_ledger_readings", ("acknowledged",)): 50,
        ("tidegate_ledger_readings", ("stored",)): 43,
        ("tidegate_ledger_readings", ("rejected",)): 1,
        ("tidegate_ledger_readings", ("missing",)): 1,
        ("tidegate_ledger_readings", ("waiting",)): 5,
        ("tidegate_ledger_readings", ("unwatched",)): 4,
        ("tidegate_ledger_check_age_seconds", ()): 5,
        ("tidegate_ledger_reports_lost_total", ()): 2,
    }


def test_what_is_unknown_is_left_out() -> None:
    unmeasured = msgspec.structs.replace(VIEW, samples=(), chain=ChainStates(), alarms=(), completeness=None)
    always = {"tidegate_leader", "tidegate_acting", "tidegate_alarms", "tidegate_plans_stuck", "tidegate_withheld"}
    assert {name for name, _ in scraped(unmeasured)} == always
    now = msgspec.structs.replace(NOW, capacity_per_s=None, demand_per_s=None, nodes_wanted=None)
    gone = scraped(VIEW).keys() - scraped(msgspec.structs.replace(VIEW, samples=(now,))).keys()
    assert gone == {
        ("tidegate_capacity_messages_per_second", ()),
        ("tidegate_demand_messages_per_second", ()),
        ("tidegate_processing_nodes", ("wanted",)),
    }


def test_frozen_is_not_acting() -> None:
    frozen = msgspec.structs.replace(VIEW, mode=Mode(frozen=True))
    assert scraped(frozen)["tidegate_acting", ()] == 0


def test_every_metric_says_what_it_is() -> None:
    families = list(text_string_to_metric_families(exposition(VIEW, 100.0).decode()))
    assert all(family.documentation.endswith(".") and family.type in ("gauge", "counter") for family in families)


SAID = TablesState(
    maintainer="m1",
    at_s=90.0,
    tables={"readings": TableHealth(active_files=7, log_entries=40, bytes=9000, rows=500, dates=2)},
    runs=(
        MaintenanceRun(table="readings", at_s=40.0, seconds=3.0, problem="full"),
        MaintenanceRun(table="readings", at_s=60.0, seconds=2.5),
        MaintenanceRun(table="means", at_s=50.0, seconds=1.0, problem="full"),
    ),
    next_s=130.0,
    alarms=("many files",),
)


def test_tables_slices_and_refused_readings_are_there_too() -> None:
    node = NodeState(name="n1", alive=True, slices=(0,), rows=1, rejects={"too old": 4})
    slices = (SliceState(number=0, waiting=30, age_s=1.5), SliceState(number=1), SliceState(number=2, waiting=5))
    chain = ChainStates(nodes=(node,), slices=slices, tables=SAID)
    shown = scraped(msgspec.structs.replace(VIEW, samples=(), chain=chain, alarms=()), now_s=100.0)
    found = {
        key: value
        for key, value in shown.items()
        if key[0].startswith(("tidegate_slice", "tidegate_table", "tidegate_maint")) or "rejected" in key[0]
    }
    assert found == {
        ("tidegate_node_rejected_total", ("n1", "too old")): 4,
        ("tidegate_slice_waiting", ("0",)): 30,
        ("tidegate_slice_waiting", ("2",)): 5,
        ("tidegate_slice_age_seconds", ("0",)): 1.5,
        ("tidegate_table_active_files", ("readings",)): 7,
        ("tidegate_table_log_entries", ("readings",)): 40,
        ("tidegate_table_bytes", ("readings",)): 9000,
        ("tidegate_table_rows", ("readings",)): 500,
        ("tidegate_maintenance_last_timestamp_seconds", ("readings",)): 60,
        ("tidegate_maintenance_last_timestamp_seconds", ("means",)): 50,
        ("tidegate_maintenance_last_seconds", ("readings",)): 2.5,
        ("tidegate_maintenance_last_seconds", ("means",)): 1,
        ("tidegate_maintenance_last_failed", ("readings",)): 0,
        ("tidegate_maintenance_last_failed", ("means",)): 1,
        ("tidegate_maintenance_next_timestamp_seconds", ()): 130,
        ("tidegate_maintainer_alarms", ()): 1,
        ("tidegate_maintainer_silent_seconds", ()): 10,
    }
