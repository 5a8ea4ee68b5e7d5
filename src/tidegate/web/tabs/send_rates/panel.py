"""The tab itself: the sentence, the picture, the classes, the decisions, the values."""

from tidegate.model.view import View
from tidegate.web.components.decision_list import DecisionList
from tidegate.web.components.elements import Chart, Sentence, TitledTable, columns, heading
from tidegate.web.tabs.send_rates import charts, tables
from tidegate.web.tabs.send_rates.sentence import sentence
from tidegate.web.values.publish_rates import PublishRates

DECISIONS_MAX = 4


class SendRatesPanel:
    def __init__(self) -> None:
        self._sentence = Sentence()
        self._chart = Chart(
            charts.SEND_RATES_PX, "Message rates, advised intervals and processing nodes over two minutes"
        )
        left, right = columns()
        with left:
            self._classes = TitledTable("Classes of devices", "wide")
            self._control = TitledTable("Phase and mode", "named")
            heading("Last decisions about send rates")
            self._decisions = DecisionList(DECISIONS_MAX)
        with right:
            self._values = TitledTable("Raw values")

    def show(self, view: View, rates: PublishRates) -> None:
        self._sentence.show(sentence(view))
        self._chart.draw(charts.send_rates(view))
        self._classes.show(tables.classes(view, rates))
        self._control.show(tables.control(view))
        self._decisions.show(charts.about_send_rates(view.decisions))
        self._values.show(tables.values(view))
