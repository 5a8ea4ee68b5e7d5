"""Tables, pure: rows of text, and their HTML. Every cell is escaped: names come from elsewhere."""

from collections.abc import Sequence
from html import escape

import msgspec

from tidegate.web.values.words import NOTHING_MEASURED


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


def value_table(*rows: tuple[str, str]) -> Table:
    """Names and what they are now: the raw values of a tab."""
    return Table(columns=("Value", "Now"), rows=rows, numeric=frozenset({"Now"}), empty=NOTHING_MEASURED)
