"""The tab itself: one list."""

from tidegate.model.view import View
from tidegate.web.components.decision_list import DecisionList
from tidegate.web.components.elements import heading
from tidegate.web.values.publish_rates import PublishRates

DECISIONS_MAX = 200


class DecisionsPanel:
    def __init__(self) -> None:
        heading("Decisions")
        self._decisions = DecisionList(DECISIONS_MAX)

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        self._decisions.show(view.decisions)
