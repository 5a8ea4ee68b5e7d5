"""The tab itself: the sentence, the picture, the classes, the decisions, the values."""

from html import escape

from nicegui import ui

from tidegate.model.view import View
from tidegate.web.decision_list import DecisionList
from tidegate.web.elements import Chart, heading
from tidegate.web.publish_rates import PublishRates
from tidegate.web.send_rates import charts, tables
from tidegate.web.send_rates.sentence import sentence

DECISIONS_MAX = 4


class SendRates:
    def __init__(self) -> None:
        self._sentence = ui.html(sanitize=False)
        self._chart = Chart(
            charts.SEND_RATES_PX, "Message rates, advised intervals and processing nodes over two minutes"
        )
        with ui.element("div").classes("columns"):
            with ui.element("section"):
                heading("Classes of devices")
                self._classes = ui.html(sanitize=False).classes("wide")
                heading("Phase and mode")
                self._control = ui.html(sanitize=False).classes("named")
                heading("Last decisions about send rates")
                self._decisions = DecisionList(DECISIONS_MAX)
            with ui.element("section"):
                heading("Raw values")
                self._values = ui.html(sanitize=False)

    def show(self, view: View, rates: PublishRates) -> None:
        self._sentence.content = f"<p class='because'>{escape(sentence(view))}</p>"
        self._chart.draw(charts.send_rates(view))
        self._classes.content = tables.classes(view, rates).html()
        self._control.content = tables.control(view).html()
        self._decisions.show(charts.about_send_rates(view.decisions))
        self._values.content = tables.values(view).html()
