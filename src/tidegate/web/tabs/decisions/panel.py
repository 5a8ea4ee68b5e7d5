"""The tab itself: the decisions, and what is wanted and not done."""

from tidegate.model.view import View
from tidegate.web.components.decision_list import DecisionList
from tidegate.web.components.elements import TitledTable, heading
from tidegate.web.components.table import Table
from tidegate.web.values.publish_rates import PublishRates

DECISIONS_MAX = 200


class DecisionsPanel:
    def __init__(self) -> None:
        self._withheld = TitledTable("Wanted and not done", "wide")
        heading("Decisions")
        self._decisions = DecisionList(DECISIONS_MAX)

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        self._withheld.show(withheld(view))
        self._decisions.show(view.decisions)


def withheld(view: View) -> Table:
    return Table(
        columns=("What stands between",),
        rows=tuple((sentence,) for sentence in view.withheld),
        empty="Whatever is wanted is done.",
    )
