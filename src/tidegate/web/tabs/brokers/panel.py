"""The tab itself: one table."""

from tidegate.model.view import View
from tidegate.web.components.elements import TitledTable
from tidegate.web.tabs.brokers.tables import brokers
from tidegate.web.values.publish_rates import PublishRates


class BrokersPanel:
    def __init__(self) -> None:
        self._brokers = TitledTable("Brokers", "wide")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        self._brokers.show(brokers(view))
