"""The gateways in rows, pure: each one, whom it holds and refuses and why, and how loaded its processes are."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tidegate.model.observations import HeldClient
from tidegate.model.view import seconds
from tidegate.web.components.refusals import Gateways, most_first
from tidegate.web.components.table import Table, value_table
from tidegate.web.values.gateway_history import Record, Records
from tidegate.web.values.words import UNKNOWN, number, shortened

CLIENT_LETTERS_MAX = 64
CLIENTS_SHOWN = 20
OVERLOAD_MAX = 10


def gateways(shown: Gateways, records: Records) -> Table:
    columns = ("Gateway", "Address", "Connections", "In, msg/s", "Acknowledged, msg/s", "Held", "Overload", "Brokers")
    return Table(
        columns=columns,
        numeric=frozenset(columns[2:7]),
        rows=tuple(
            (
                one.name,
                one.address,
                number(one.connections),
                *_rates(records.get(one.name)),
                number(one.held),
                f"{one.overload} of {OVERLOAD_MAX}",
                ", ".join(f"{broker} {number(count)}" for broker, count in sorted(one.brokers.items())) or UNKNOWN,
            )
            for one in shown
        ),
    )


def _rates(record: Record | None) -> tuple[str, str]:
    now = record.now if record else None
    return (number(now.in_per_s), number(now.acknowledged_per_s)) if now else (UNKNOWN, UNKNOWN)


def held_clients(shown: Gateways) -> Table:
    """Those that have waited longest, over all gateways."""
    waiting = [(one, gateway.name) for gateway in shown for one in gateway.most_held]
    waiting.sort(key=lambda item: -item[0].waiting_s)
    return Table(
        columns=("Client", "Gateway", "Held because of", "Publishes", "Waiting"),
        numeric=frozenset({"Publishes", "Waiting"}),
        rows=tuple(_held_client(one, name) for one, name in waiting[:CLIENTS_SHOWN]),
        empty="Nobody is held: every publish is passed on as it comes.",
    )


def _held_client(one: HeldClient, gateway: str) -> tuple[str, ...]:
    name = shortened(one.client_id, CLIENT_LETTERS_MAX)
    return name, gateway, one.reason, number(one.publishes), seconds(one.waiting_s)


def held_reasons(shown: Gateways) -> Table:
    return _counted("Held because of", "Clients", (gateway.held_clients for gateway in shown), "Nobody is held.")


def dropped(shown: Gateways) -> Table:
    dropped = (gateway.dropped for gateway in shown)
    return _counted("Dropped at QoS 0 because", "Publishes", dropped, "Nothing was dropped.")


def processes(shown: Gateways, records: Records) -> Table:
    columns = ("Gateway", "Process", "PID", "Connections", "msg/s", "CPU", "Late", "State")
    return Table(
        columns=columns,
        numeric=frozenset(columns[1:7]),
        rows=tuple(
            (
                gateway.name,
                str(one.number),
                str(one.pid),
                number(one.connections),
                number(records[gateway.name].process_per_s.get(one.number) if gateway.name in records else None),
                f"{one.cpu_share:.0%}",
                milliseconds(one.late_s),
                "▲ draining" if one.draining else "● serving",
            )
            for gateway in shown
            for one in gateway.processes
        ),
        empty="No gateway has said yet how its processes are loaded.",
    )


def versions(shown: Gateways) -> Table:
    connected = any(gateway.connections for gateway in shown)
    empty = "No gateway has said yet what its clients speak." if connected else "No client is connected."
    return _counted("MQTT", "Connections", (gateway.versions for gateway in shown), empty)


def values(shown: Gateways) -> Table:
    return value_table(
        ("Waiting to be connected", number(sum(one.admitting for one in shown))),
        ("Handed over", f"{number(sum(one.publishes for one in shown))} msg"),
        ("Acknowledged", f"{number(sum(one.acknowledged for one in shown))} msg"),
        ("Held so far", f"{number(sum(one.held_total for one in shown))} msg"),
        ("Advice sent", number(sum(one.advised for one in shown))),
        ("From devices", mebibytes(sum(one.bytes_in for one in shown))),
        ("To devices", mebibytes(sum(one.bytes_out for one in shown))),
        ("Processes replaced", number(sum(one.replaced for one in shown))),
    )


def total(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Summed over gateways; what is not there has no row."""
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return +found


def _counted(kinds: str, unit: str, counts: Iterable[Mapping[str, int]], empty: str) -> Table:
    """How many of each kind, over all gateways."""
    rows = tuple((kind, number(count)) for kind, count in most_first(total(counts)))
    return Table(columns=(kinds, unit), numeric=frozenset({unit}), rows=rows, empty=empty)


def milliseconds(value_s: float) -> str:
    return f"{value_s * 1000:.0f} ms" if value_s < 1 else seconds(value_s)


def mebibytes(size: int) -> str:
    return f"{number(size / 1024**2)} MiB"
