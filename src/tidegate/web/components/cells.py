"""A row of coloured cells: one per thing that is good, worth caution, dangerous or unknown.

The colour is never alone: a sign and words stand in the cell, and all that is known of it in its title. A cell stays
the same element while its values change, so that a title being read, or the keyboard's focus, does not go.
"""

from collections.abc import Sequence
from html import escape

import msgspec
from nicegui import ui

SIGNS = {"good": "●", "caution": "▲", "danger": "■", "unknown": "?"}


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """``severity`` is a key of ``SIGNS``; ``is_moving`` marks what is about to change hands."""

    name: str
    value: str
    detail: str
    title: str
    severity: str
    is_moving: bool = False


class CellRow:
    """``says`` names the row to screen readers; ``empty`` is what stands there while there is no cell."""

    def __init__(self, says: str, empty: str) -> None:
        self._empty = ui.label(empty).classes("quiet")
        self._list = ui.element("ol").classes("cells").props(f'aria-label="{says}"')
        self._elements: list[ui.html] = []

    def show(self, cells: Sequence[Cell]) -> None:
        while len(self._elements) > len(cells):
            self._elements.pop().delete()
        while len(self._elements) < len(cells):
            with self._list:
                self._elements.append(ui.html(tag="li", sanitize=False).props("tabindex=0"))
        for element, cell in zip(self._elements, cells, strict=True):
            element.content = cell_html(cell)
            element.classes(replace=cell_kind(cell))
            if element.props.get("title") != cell.title:
                element.props["title"] = element.props["aria-label"] = cell.title
                element.update()
        self._empty.set_visibility(not cells)


def cell_kind(cell: Cell) -> str:
    """The style sheet's names for it."""
    return f"cell-{cell.severity}" + (" moving" if cell.is_moving else "")


def cell_html(cell: Cell) -> str:
    parts = (("name", cell.name), ("value", f"{SIGNS[cell.severity]} {cell.value}"), ("detail", cell.detail))
    return "".join(f"<div class='{part}'>{escape(words)}</div>" for part, words in parts)
