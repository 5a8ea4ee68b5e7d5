"""The few elements that panels are made of: a heading, and a chart that is drawn anew without flicker."""

from nicegui import ui

from tidegate.web.plot import Options


def heading(text: str) -> None:
    ui.html(text, tag="h2", sanitize=False)


class Chart:
    """``says`` names the chart for who cannot see it; the same values stand in a table near it."""

    def __init__(self, height_px: int, says: str) -> None:
        # SVG, because its colours may be the style sheet's and so follow light and dark.
        self._element = ui.echart({"series": []}, renderer="svg").classes("chart").style(f"height: {height_px}px")
        self._element.props(f'role=img aria-label="{says}"')

    def draw(self, options: Options) -> None:
        self._element.options.clear()
        self._element.options.update(options)
        self._element.update()
