"""Rows and checks as tables, and values as people read them."""

from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from tidegate.report.checks import Check
from tidegate.report.json_form import to_json

_WIDTH_UNLESS_TERMINAL = 120


def console_on(stream: TextIO) -> Console:
    # A file or a pipe has no width: without one rich would fold the table at 80 columns.
    return Console(file=stream, width=None if stream.isatty() else _WIDTH_UNLESS_TERMINAL)


def rows_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rows with the same keys, or nearly: a column per key, in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(show_edge=False, pad_edge=False)
    for name in names:
        numeric = all(isinstance(row.get(name, 0), int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_escape(show(row[name])) if name in row else "" for name in names))
    return table


def checks_table(checks: Sequence[Check]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name in ("check", "value", "bar", "holds"):
        table.add_column(name, justify="right" if name == "value" else "left", overflow="fold")
    for check in checks:
        word = "[green]holds[/green]" if check.holds else "[bold red]fails[/bold red]"
        table.add_row(_escape(check.name), _escape(show(check.value)), _escape(show(check.bar)), word)
    return table


def show(value: Any) -> str:
    """A value for people: thousands separated, three significant digits for fractions."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return value if isinstance(value, str) else to_json(value)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")
