"""The tab itself: a sentence, the rules, the events, and what happened."""

from tidegate.model.view import View
from tidegate.web.components.elements import Sentence, TitledTable, columns
from tidegate.web.tabs.rules.tables import events, notices, rules, sentence
from tidegate.web.values.publish_rates import PublishRates


class RulesPanel:
    def __init__(self) -> None:
        self._sentence = Sentence()
        self._rules = TitledTable("Rules", "wide")
        left, right = columns()
        with left:
            self._notices = TitledTable("What happened", "wide")
        with right:
            self._events = TitledTable("Events")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        self._sentence.show(sentence(view.rules))
        self._rules.show(rules(view))
        self._events.show(events(view))
        self._notices.show(notices(view))
