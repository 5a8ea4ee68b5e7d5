"""What stands behind each tab: thin glue from pure rows and options to the page's elements."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from nicegui import ui

from tidegate.model.view import View
from tidegate.web import chain, charts, tables
from tidegate.web.decision_list import DecisionList
from tidegate.web.plot import Options
from tidegate.web.source import Source

DECISIONS_FIRST, DECISIONS_ALL = 6, 200


class Panel(Protocol):
    def show(self, view: View, gateway_rates: Mapping[str, float]) -> None: ...


class Overview:
    """The picture, the last decisions, the raw values."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._chain = ui.html(sanitize=False)
        self._chart = _chart(charts.OVERVIEW_PX)
        with ui.element("div").classes("columns"):
            with ui.element("section"):
                _heading("Last decisions")
                self._decisions = DecisionList(DECISIONS_FIRST)
            with ui.element("section"):
                _heading("Raw values")
                self._values = ui.html(sanitize=False)

    def show(self, view: View, gateway_rates: Mapping[str, float]) -> None:
        self._chain.content = chain.html(chain.stations(view, gateway_rates))
        _draw(self._chart, charts.overview(view.samples, view.decisions, self._source.past()))
        self._decisions.show(view.decisions)
        self._values.content = tables.raw_values(view, time.time()).html()


class SendRates:
    def __init__(self) -> None:
        self._chart = _chart(charts.SEND_RATES_PX)

    def show(self, view: View, gateway_rates: Mapping[str, float]) -> None:  # noqa: ARG002
        _draw(self._chart, charts.send_rates(view.samples))


class Tables:
    """One or more tables under their headings."""

    def __init__(self, parts: Mapping[str, Callable[[View, Mapping[str, float]], tables.Table]]) -> None:
        self._parts = []
        for heading, table in parts.items():
            _heading(heading)
            self._parts.append((ui.html(sanitize=False).classes("wide"), table))

    def show(self, view: View, gateway_rates: Mapping[str, float]) -> None:
        for element, table in self._parts:
            element.content = table(view, gateway_rates).html()


class Decisions:
    def __init__(self) -> None:
        _heading("Decisions")
        self._decisions = DecisionList(DECISIONS_ALL)

    def show(self, view: View, gateway_rates: Mapping[str, float]) -> None:  # noqa: ARG002
        self._decisions.show(view.decisions)


def _heading(text: str) -> None:
    ui.html(text, tag="h2", sanitize=False)


def _chart(height_px: int) -> ui.echart:
    # SVG, because its colours may be the style sheet's and so follow light and dark.
    return ui.echart({"series": []}, renderer="svg").classes("chart").style(f"height: {height_px}px")


def _draw(chart: ui.echart, options: Options) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()
