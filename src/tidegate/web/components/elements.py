"""The page's elements that panels are made of. Each is put on the page once, and filled whenever there is news."""

from html import escape

from nicegui import ui

from tidegate.web.components.plot import ChartOptions
from tidegate.web.components.table import Table


def heading(text: str) -> None:
    ui.html(text, tag="h2", sanitize=False)


def columns() -> tuple[ui.element, ui.element]:
    """Two of them: side by side where the window is wide enough."""
    with ui.element("div").classes("columns"):
        return ui.element("section"), ui.element("section")


class Sentence:
    """How things are and why, in words, at the top of a tab."""

    def __init__(self) -> None:
        self._element = ui.html(sanitize=False)

    def show(self, text: str) -> None:
        self._element.content = f"<p class='because'>{escape(text)}</p>"


class TitledTable:
    """A table under its heading. ``kind`` is the style sheet's name for how it is laid out."""

    def __init__(self, title: str, kind: str = "") -> None:
        heading(title)
        self._element = ui.html(sanitize=False).classes(kind)

    def show(self, table: Table) -> None:
        self._element.content = table.html()


class Chart:
    """Drawn anew without flicker. ``says`` names it to screen readers; the same values stand in a table near it."""

    def __init__(self, height_px: int, says: str) -> None:
        self._height_px = height_px
        # SVG, because its colours may be the style sheet's and so follow light and dark.
        self._element = ui.echart({"series": []}, renderer="svg").classes("chart").style(f"height: {height_px}px")
        self._element.props(f'role=img aria-label="{says}"')

    def draw(self, options: ChartOptions, height_px: int | None = None) -> None:
        """A height is given where it changes with what is drawn."""
        if height_px is not None and height_px != self._height_px:
            self._height_px = height_px
            self._element.style(f"height: {height_px}px")
        self._element.options.clear()
        self._element.options.update(options)
        self._element.update()
