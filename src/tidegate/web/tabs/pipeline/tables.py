"""The processing nodes in rows, pure: each one, what it refused of what devices sent, and whose that was."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tidegate.model.observations import NodeState
from tidegate.model.progress import Batch
from tidegate.model.view import View, seconds
from tidegate.web.components.table import Table, value_table
from tidegate.web.tabs.pipeline import maintenance
from tidegate.web.values.node_history import NodeRecord
from tidegate.web.values.words import UNKNOWN, number, rate, shortened

DEVICE_LETTERS_MAX = 64
DEVICES_SHOWN = 20
REASON_LETTERS_MAX = 120
NOBODY_SAYS = "No processing node runs that could say so."

Nodes = tuple[NodeState, ...]
Records = Mapping[str, NodeRecord]


def nodes(view: View, records: Records) -> Table:
    columns = ("Processing node", "State", "Slices", "Arriving", "Processed", "At its limit", "Rows", "Problem")
    return Table(
        columns=columns,
        numeric=frozenset(columns[3:7]),
        rows=tuple(
            (
                node.name,
                _state(node),
                ", ".join(map(str, node.slices)) or "none",
                *_rates(node, records.get(node.name)),
                number(node.rows),
                node.problem or "none",
            )
            for node in view.chain.nodes
        ),
        empty="No processing node runs: start one with 'tidegate node'; readings wait meanwhile.",
    )


def _state(node: NodeState) -> str:
    if not node.alive:
        return "■ does not answer"
    return "● alive" if node.ready else "▲ warms up"


def _rates(node: NodeState, record: NodeRecord | None) -> tuple[str, str, str]:
    """Of a node that has gone nothing is known but what it could do."""
    arriving, processed, capacity = UNKNOWN, UNKNOWN, None
    if record is not None and record.now is not None:
        capacity = record.now.capacity_per_s
        if node.alive:
            arriving, processed = number(record.now.arriving_per_s), number(record.processed_per_s)
    elif node.limit_s > 0:
        capacity = node.limit_rows / node.limit_s
    return arriving, processed, rate(capacity) if capacity is not None else "not seen yet"


def refused_reasons(shown: Nodes, records: Records) -> Table:
    """Over all nodes, most first. What is not known of one of them is not known of all."""
    counts = refused(shown)
    return Table(
        columns=("Refused because", "Readings", "Per minute"),
        numeric=frozenset({"Readings", "Per minute"}),
        rows=tuple(
            (shortened(reason, REASON_LETTERS_MAX), number(count), number(refused_per_min(shown, records, reason)))
            for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ),
        empty="No reading was refused." if shown else NOBODY_SAYS,
    )


def refused(shown: Nodes) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in shown:
        found.update(node.rejects)
    return +found


def refused_per_min(shown: Nodes, records: Records, reason: str | None = None) -> float | None:
    """Of one reason, or of all; over the nodes that answer. Half a sum would pass for the whole."""
    total = 0.0
    for node in shown:
        known = records[node.name].refused_per_min if node.name in records else None
        if not node.alive:
            continue
        if known is None:
            return None
        total += sum(known.values()) if reason is None else known.get(reason, 0.0)
    return total


def refused_devices(shown: Nodes) -> Table:
    """A device's readings may have been refused by several nodes, as its slice moved."""
    found: Counter[tuple[str, str]] = Counter()
    for node in shown:
        for device, reason, count in node.rejected_devices:
            found[device, reason] += count
    most = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:DEVICES_SHOWN]
    return Table(
        columns=("Device", "Refused because", "Readings"),
        numeric=frozenset({"Readings"}),
        rows=tuple(
            (shortened(device, DEVICE_LETTERS_MAX) or "not said", shortened(reason, REASON_LETTERS_MAX), number(count))
            for (device, reason), count in most
        ),
        empty="No device had a reading refused." if shown else NOBODY_SAYS,
    )


def raw_values(view: View, now_s: float) -> Table:
    shown, tables = view.chain.nodes, view.chain.tables
    batches = [one for node in shown if node.alive for one in node.batches[-1:]]
    return value_table(
        *((("Rows committed", number(_rows(shown))),) if shown else ()),
        *((("Last batch", _batch(max(batches, key=lambda one: one.at_s), now_s)),) if batches else ()),
        *((("Readings refused", number(refused(shown).total())),) if shown else ()),
        *maintenance.values(tables, now_s),
    )


def _rows(shown: Iterable[NodeState]) -> int | None:
    living = [node.rows for node in shown if node.alive]
    return sum(living) if living else None


def _batch(batch: Batch, now_s: float) -> str:
    return f"{number(batch.rows)} rows in {seconds(batch.seconds)}, {maintenance.ago(batch.at_s, now_s)}"
