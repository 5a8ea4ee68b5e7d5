"""Tables from the view, pure: rows of text, and their HTML. Every cell is escaped: names come from elsewhere."""

from collections.abc import Sequence
from html import escape

import msgspec

from tidegate.model.view import View, seconds
from tidegate.web.asked import asked_of
from tidegate.web.words import UNKNOWN, number, rate, shown_phase, view_age_s


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Columns whose name is in ``numeric`` are set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()
    empty: str = "Nothing to show."

    def html(self) -> str:
        if not self.rows:
            return f"<p class='quiet'>{escape(self.empty)}</p>"
        marks = [' class="number"' if column in self.numeric else "" for column in self.columns]
        head = "".join(f"<th{mark}>{escape(name)}</th>" for name, mark in zip(self.columns, marks, strict=True))
        body = "".join(f"<tr>{_cells(row, marks)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], marks: Sequence[str]) -> str:
    return "".join(f"<td{mark}>{escape(cell)}</td>" for cell, mark in zip(row, marks, strict=True))


def raw_values(view: View, now_s: float) -> Table:
    now, asked = view.now, asked_of(view)
    columns, numeric = ("Value", "Now"), frozenset({"Now"})
    if now is None:
        return Table(columns=columns, rows=(), empty="Nothing is measured yet.")
    rows = (
        ("Age of data", seconds(now.age_s)),
        ("Backlog", f"{number(now.waiting)} msg"),
        *((("Demand", rate(now.demand_per_s)),) if now.demand_per_s is not None else ()),
        ("Arriving", rate(now.arrival_per_s)),
        ("Processed", rate(now.departure_per_s)),
        ("Capacity", rate(now.capacity_per_s)),
        ("Advised interval" if asked.is_told else "Would be advised", asked.of("")),
        ("Phase", shown_phase(view.mode, now.phase) or UNKNOWN),
        ("Devices", number(now.devices)),
        ("Leading controller", view.leader or "none"),
        ("Age of these values", seconds(view_age_s(view, now_s) or 0.0)),
    )
    return Table(columns=columns, rows=rows, numeric=numeric)


def brokers(view: View) -> Table:
    return Table(
        columns=("Broker", "Address", "Health", "Connections", "Problem"),
        numeric=frozenset({"Connections"}),
        rows=tuple(
            (
                broker.name,
                broker.address,
                "● healthy" if broker.healthy else "■ not healthy",
                number(broker.connections if broker.healthy else None),
                broker.problem or "none",
            )
            for broker in view.chain.brokers
        ),
    )


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
