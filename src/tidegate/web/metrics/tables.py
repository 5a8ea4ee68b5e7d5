"""The tables and their maintenance."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from tidegate.model.tables import TablesState
from tidegate.web.metrics.families import filled


def of_tables(said: TablesState) -> Iterator[Metric]:
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
    yield from filled(files, entries, size, rows)


def of_maintenance(said: TablesState, now_s: float) -> Iterator[Metric]:
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
    yield from filled(begun, took, failed)
    if said.next_s:
        yield GaugeMetricFamily(
            "tidegate_maintenance_next_timestamp_seconds", "When the next round begins (Unix time).", value=said.next_s
        )
    yield GaugeMetricFamily("tidegate_maintainer_alarms", "Alarms of the maintainer.", value=len(said.alarms))
    yield GaugeMetricFamily(
        "tidegate_maintainer_silent_seconds", "Since the maintainer said something.", value=max(0.0, now_s - said.at_s)
    )
