"""Whom gateways refuse and why, in rows: for every reason, or for those that a tab is about."""

from collections.abc import Collection, Mapping

from tidegate.model.observations import GatewayState
from tidegate.web.components.table import Table
from tidegate.web.values.gateway_history import Record, Records
from tidegate.web.values.words import UNKNOWN, number

Gateways = tuple[GatewayState, ...]


def refusals(
    shown: Gateways, records: Records, only: Collection[str] | None = None, empty: str = "Nobody was refused."
) -> Table:
    return Table(
        columns=("Gateway", "Refused because", "Times", "Per minute"),
        numeric=frozenset({"Times", "Per minute"}),
        rows=tuple(
            (gateway.name, reason, number(count), _per_minute(records.get(gateway.name), reason))
            for gateway in shown
            for reason, count in most_first(gateway.refused)
            if count and (only is None or reason in only)
        ),
        empty=empty,
    )


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _per_minute(record: Record | None, reason: str) -> str:
    known = record.refused_per_min if record else None
    return UNKNOWN if known is None else number(known.get(reason, 0.0))
