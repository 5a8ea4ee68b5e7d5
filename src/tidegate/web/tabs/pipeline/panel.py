"""The tab itself: one table."""

from tidegate.model.view import View
from tidegate.web.components.elements import TitledTable
from tidegate.web.tabs.pipeline.tables import nodes
from tidegate.web.values.publish_rates import PublishRates


class PipelinePanel:
    def __init__(self) -> None:
        self._nodes = TitledTable("Processing nodes", "wide")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        self._nodes.show(nodes(view))
