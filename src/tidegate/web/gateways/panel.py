"""The tab itself: the sentence, the numbers, the picture, the tables, the values."""

from html import escape

from nicegui import ui

from tidegate.model.view import View
from tidegate.web import chain
from tidegate.web.elements import Chart, heading
from tidegate.web.gateways import charts, tables
from tidegate.web.gateways.sentence import sentence, tiles
from tidegate.web.publish_rates import PublishRates
from tidegate.web.source import Source


class Gateways:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._sentence = ui.html(sanitize=False)
        self._tiles = ui.html(sanitize=False)
        self._chart = Chart(
            charts.GATEWAYS_PX, "Message rates, connections and held publishes of the gateways over two minutes"
        )
        with ui.element("div").classes("columns"):
            with ui.element("section"):
                self._gateways = _table("Gateways")
                self._held = _table("Held clients that have waited longest")
                self._processes = _table("Processes")
                self._refused = _table("Refused")
            with ui.element("section"):
                self._reasons = _table("Held clients, and why")
                self._versions = _table("Versions of MQTT")
                self._dropped = _table("Dropped")
                self._values = _table("Raw values")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - the history has them over time
        shown, records = view.chain.gateways, self._source.gateways.records()
        self._sentence.content = f"<p class='because'>{escape(sentence(shown, records))}</p>"
        self._tiles.content = chain.html(tiles(shown, records), "tiles")
        self._chart.draw(charts.gateways(records))
        self._gateways.content = tables.gateways(shown, records).html()
        self._held.content = tables.held_clients(shown).html()
        self._processes.content = tables.processes(shown, records).html()
        self._refused.content = tables.refusals(shown, records).html()
        self._reasons.content = tables.held_reasons(shown).html()
        self._versions.content = tables.versions(shown).html()
        self._dropped.content = tables.dropped(shown).html()
        self._values.content = tables.values(shown).html()


def _table(title: str) -> ui.html:
    heading(title)
    return ui.html(sanitize=False).classes("wide")
