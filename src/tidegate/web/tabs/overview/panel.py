"""The tab itself: the chain, the picture, the last decisions, the raw values."""

import time

from nicegui import ui

from tidegate.model.view import View
from tidegate.web.components.decision_list import DecisionList
from tidegate.web.components.elements import Chart, TitledTable, columns, heading
from tidegate.web.components.stations import stations_html
from tidegate.web.tabs.overview import charts, tables
from tidegate.web.tabs.overview.chain import stations
from tidegate.web.tabs.overview.completeness import completeness_html
from tidegate.web.tabs.overview.first_reading import first_reading_html
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.source import Source

DECISIONS_MAX = 6


class OverviewPanel:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._chain = ui.html(sanitize=False)
        self._first_reading = ui.html(sanitize=False)
        self._completeness = ui.html(sanitize=False)
        self._chart = Chart(charts.OVERVIEW_PX, "Age of data and message rates over two minutes")
        left, right = columns()
        with left:
            heading("Last decisions")
            self._decisions = DecisionList(DECISIONS_MAX)
        with right:
            self._values = TitledTable("Raw values")

    def show(self, view: View, rates: PublishRates) -> None:
        self._chain.content = stations_html(stations(view, rates))
        self._first_reading.content = first_reading_html(view, self._source.first_reading())
        self._completeness.content = completeness_html(view, time.time())
        self._chart.draw(charts.overview(view.samples, view.decisions, self._source.past()))
        self._decisions.show(view.decisions)
        self._values.show(tables.raw_values(view, time.time()))
