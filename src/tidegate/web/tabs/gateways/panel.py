"""The tab itself: the sentence, the numbers, the picture, the tables, the values."""

from nicegui import ui

from tidegate.model.view import View
from tidegate.web.components.elements import Chart, Sentence, TitledTable, columns
from tidegate.web.components.refusals import refusals
from tidegate.web.components.stations import stations_html
from tidegate.web.tabs.gateways import charts, tables
from tidegate.web.tabs.gateways.sentence import sentence, tiles
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.source import Source


class GatewaysPanel:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._sentence = Sentence()
        self._tiles = ui.html(sanitize=False)
        self._chart = Chart(
            charts.GATEWAYS_PX, "Message rates, connections and held publishes of the gateways over two minutes"
        )
        left, right = columns()
        with left:
            self._gateways = TitledTable("Gateways", "wide")
            self._held = TitledTable("Held clients that have waited longest", "wide")
            self._processes = TitledTable("Processes", "wide")
            self._refused = TitledTable("Refused", "wide")
        with right:
            self._reasons = TitledTable("Held clients, and why", "wide")
            self._versions = TitledTable("Versions of MQTT", "wide")
            self._dropped = TitledTable("Dropped", "wide")
            self._values = TitledTable("Raw values", "wide")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - the history has them over time
        shown, records = view.chain.gateways, self._source.gateways.records()
        self._sentence.show(sentence(shown, records))
        self._tiles.content = stations_html(tiles(shown, records), "tiles")
        self._chart.draw(charts.gateways(records))
        self._gateways.show(tables.gateways(shown, records))
        self._held.show(tables.held_clients(shown))
        self._processes.show(tables.processes(shown, records))
        self._refused.show(refusals(shown, records))
        self._reasons.show(tables.held_reasons(shown))
        self._versions.show(tables.versions(shown))
        self._dropped.show(tables.dropped(shown))
        self._values.show(tables.values(shown))
