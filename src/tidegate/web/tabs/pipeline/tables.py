"""The processing nodes in rows, pure."""

from tidegate.model.view import View, seconds
from tidegate.web.components.table import Table
from tidegate.web.values.words import UNKNOWN, number, rate


def nodes(view: View) -> Table:
    return Table(
        columns=("Processing node", "State", "Slices", "Rows", "Busy", "At its limit", "Problem"),
        numeric=frozenset({"Rows", "Busy", "At its limit"}),
        rows=tuple(
            (
                node.name,
                "● alive" if node.alive else "■ does not answer",
                ", ".join(map(str, node.slices)) or "none",
                number(node.rows),
                seconds(node.cost_s) if node.cost_s > 0 else UNKNOWN,
                rate(node.limit_rows / node.limit_s) if node.limit_s > 0 else "not seen yet",
                node.problem or "none",
            )
            for node in view.chain.nodes
        ),
    )
