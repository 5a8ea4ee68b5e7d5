"""What all processes of a gateway did and do, as one value."""

from collections.abc import Sequence

from tidegate.gateway.shared import layout
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.reasons import REASONS
from tidegate.gateway.shared.row import MOST_HELD_MAX
from tidegate.model.ledger import LedgerCounts
from tidegate.model.observations import ClassState, GatewayState, ProcessState


def state_of(
    shared: Shared,
    *,
    name: str,
    address: str,
    measured_at_s: float,
    class_names: Sequence[str],
    processes: tuple[ProcessState, ...] = (),
    replaced: int = 0,
) -> GatewayState:
    cells = [sum(each) for each in zip(*(row.cells for row in (shared.gone, *shared.rows)), strict=True)]
    told = [row.held() for row in shared.rows]
    most_held = sorted((client for each in told for client in each.most), key=lambda client: -client.waiting_s)
    held_clients: dict[str, int] = {}
    for each in told:
        for reason, count in each.clients.items():
            held_clients[reason] = held_clients.get(reason, 0) + count
    return GatewayState(
        name=name,
        address=address,
        measured_at_s=measured_at_s,
        connections=cells[layout.CONNECTIONS],
        publishers=sum(cells[layout.CLASS_DEVICES : layout.CLASSLESS_DEVICES + 1]),
        publishes=cells[layout.PUBLISHES],
        acknowledged=cells[layout.ACKNOWLEDGED],
        advised=cells[layout.ADVISED],
        bytes_in=cells[layout.BYTES_IN],
        bytes_out=cells[layout.BYTES_OUT],
        refused=_named(cells, layout.REFUSED, REASONS),
        brokers=shared.brokers().total(),
        held=cells[layout.HELD],
        held_clients=held_clients,
        most_held=tuple(most_held[:MOST_HELD_MAX]),
        held_total=cells[layout.HELD_TOTAL],
        dropped=_named(cells, layout.DROPPED, REASONS),
        admitting=cells[layout.ADMITTING],
        versions=_named(cells, layout.VERSIONS, layout.VERSION_NAMES),
        overload=max(row.cells[layout.OVERLOAD] for row in shared.rows),
        processes=processes,
        replaced=replaced,
        classes=_classes(cells, class_names),
        ledger=_ledger(cells, shared),
    )


def _ledger(cells: Sequence[int], shared: Shared) -> LedgerCounts:
    """What a process had noted and not yet reported when it went, nobody will check."""
    gone = shared.gone.cells
    return LedgerCounts(
        noted=cells[layout.NOTED],
        reported=cells[layout.REPORTED],
        nameless=cells[layout.NAMELESS],
        unwatched=cells[layout.UNWATCHED] + max(0, gone[layout.NOTED] - gone[layout.REPORTED]),
        unreported_s=max(row.cells[layout.UNREPORTED_S] for row in shared.rows),
    )


def _named(cells: Sequence[int], first: int, names: Sequence[str]) -> dict[str, int]:
    """What was counted under each name; names without a count are left out."""
    return {name: cells[first + number] for number, name in enumerate(names) if cells[first + number]}


def _classes(cells: Sequence[int], names: Sequence[str]) -> dict[str, ClassState]:
    """Every class that has published."""
    found = {}
    for number, name in enumerate(names):
        if publishes := cells[layout.CLASS_PUBLISHES + number]:
            found[name] = ClassState(devices=cells[layout.CLASS_DEVICES + number], publishes=publishes)
    return found
