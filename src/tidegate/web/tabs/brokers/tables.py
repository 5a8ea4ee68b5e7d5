"""The brokers in rows, pure."""

from tidegate.model.view import View
from tidegate.web.components.table import Table
from tidegate.web.values.words import number


def brokers(view: View) -> Table:
    return Table(
        columns=("Broker", "Address", "Health", "Connections", "Problem"),
        numeric=frozenset({"Connections"}),
        rows=tuple(
            (
                broker.name,
                broker.address,
                "● healthy" if broker.healthy else "■ not healthy",
                number(broker.connections),
                broker.problem or "none",
            )
            for broker in view.chain.brokers
        ),
    )
