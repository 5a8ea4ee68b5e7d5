"""The tab itself: the sentence, the numbers, the slices, the picture of each node, the tables, the values."""

import time

from nicegui import ui

from tidegate.model.view import View
from tidegate.web.components.cells import CellRow
from tidegate.web.components.elements import Chart, Sentence, TitledTable, columns, heading
from tidegate.web.components.stations import alarms_html, stations_html
from tidegate.web.tabs.pipeline import charts, maintenance, slices, tables
from tidegate.web.tabs.pipeline.sentence import sentence, tiles
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.source import Source


class PipelinePanel:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._sentence = Sentence()
        self._tiles = ui.html(sanitize=False)
        heading("Slices: age of the oldest reading that the tables lack")
        self._cells = CellRow("How far the tables are behind, slice by slice", slices.NO_SLICES)
        heading("Batches and rates, node by node")
        self._caption = ui.label().classes("quiet small")
        self._chart = Chart(
            charts.chart_px({}), "Batches, message rates and capacity of each processing node over two minutes"
        )
        left, right = columns()
        with left:
            self._nodes = TitledTable("Processing nodes", "wide firm log")
            self._health = TitledTable("Tables", "wide firm")
            self._alarms = ui.html(sanitize=False)
            self._runs = TitledTable("Maintenance", "wide firm log")
            self._slices = TitledTable("Slices", "wide firm")
        with right:
            self._reasons = TitledTable("Refused readings", "wide firm")
            self._devices = TitledTable("Devices with most refused readings", "wide firm devices")
            self._values = TitledTable("Raw values", "wide")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - the history has them over time
        chain, records, now_s = view.chain, self._source.nodes.records(), time.time()
        self._sentence.show(sentence(chain, records, now_s))
        self._tiles.content = stations_html(tiles(chain, records, now_s), "tiles")
        self._cells.show(slices.cells(chain.slices, chain.nodes))
        self._caption.text = charts.caption(records)
        self._chart.draw(charts.pipeline(records), charts.chart_px(records))
        self._nodes.show(tables.nodes(view, records))
        self._health.show(maintenance.health(chain.tables))
        self._alarms.content = alarms_html(maintenance.alarms(chain.tables, now_s))
        self._runs.show(maintenance.runs(chain.tables, now_s))
        self._slices.show(slices.slice_table(chain.slices))
        self._reasons.show(tables.refused_reasons(chain.nodes, records))
        self._devices.show(tables.refused_devices(chain.nodes))
        self._values.show(tables.raw_values(view, now_s))
