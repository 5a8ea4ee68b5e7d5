"""What stands behind each tab: thin glue from pure rows and options to the page's elements."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from nicegui import ui

from tidegate.model.view import View
from tidegate.web import chain, charts, tables
from tidegate.web.decision_list import DecisionList
from tidegate.web.elements import Chart, heading
from tidegate.web.publish_rates import PublishRates
from tidegate.web.source import Source

DECISIONS_FIRST, DECISIONS_ALL = 6, 200


class Panel(Protocol):
    def show(self, view: View, rates: PublishRates) -> None: ...


class Overview:
    """The picture, the last decisions, the raw values."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._chain = ui.html(sanitize=False)
        self._chart = Chart(charts.OVERVIEW_PX, "Age of data and message rates over two minutes")
        with ui.element("div").classes("columns"):
            with ui.element("section"):
                heading("Last decisions")
                self._decisions = DecisionList(DECISIONS_FIRST)
            with ui.element("section"):
                heading("Raw values")
                self._values = ui.html(sanitize=False)

    def show(self, view: View, rates: PublishRates) -> None:
        self._chain.content = chain.html(chain.stations(view, rates))
        self._chart.draw(charts.overview(view.samples, view.decisions, self._source.past()))
        self._decisions.show(view.decisions)
        self._values.content = tables.raw_values(view, time.time()).html()


class Tables:
    """One or more tables under their headings."""

    def __init__(self, parts: Mapping[str, Callable[[View, PublishRates], tables.Table]]) -> None:
        self._parts = []
        for title, table in parts.items():
            heading(title)
            self._parts.append((ui.html(sanitize=False).classes("wide"), table))

    def show(self, view: View, rates: PublishRates) -> None:
        for element, table in self._parts:
            element.content = table(view, rates).html()


class Decisions:
    def __init__(self) -> None:
        heading("Decisions")
        self._decisions = DecisionList(DECISIONS_ALL)

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002
        self._decisions.show(view.decisions)
