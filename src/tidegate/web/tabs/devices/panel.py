"""The tab itself: the sentence, how a first reading comes, one device, whom gateways refuse, the values."""

import time

from nicegui import ui

from tidegate.model.identity import IDENTITY_REFUSALS
from tidegate.model.view import View
from tidegate.web.components.elements import Sentence, TitledTable, columns, heading
from tidegate.web.components.refusals import refusals
from tidegate.web.tabs.devices import tables
from tidegate.web.tabs.devices.bringing import bringing_html
from tidegate.web.tabs.devices.looking_up import LookUp
from tidegate.web.tabs.devices.sentence import sentence
from tidegate.web.values.publish_rates import PublishRates
from tidegate.web.values.source import Source


class DevicesPanel:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._sentence = Sentence()
        left, right = columns()
        with left:
            heading("A first reading")
            self._bringing = ui.html(sanitize=False)
            LookUp(source)
            self._refused = TitledTable("Refused over identity", "wide")
        with right:
            self._values = TitledTable("Raw values")

    def show(self, view: View, rates: PublishRates) -> None:  # noqa: ARG002 - every panel is shown both
        shown, records = view.chain.gateways, self._source.gateways.records()
        self._sentence.show(sentence(shown, records, view.identity))
        self._bringing.content = bringing_html(self._source.first_reading())
        self._refused.show(refusals(shown, records, IDENTITY_REFUSALS, "Nobody was refused over identity."))
        self._values.show(tables.values(view.identity, time.time()))
