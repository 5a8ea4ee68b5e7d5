"""The dashboard: the header, the tabs of the parts that run, and one timer that shows the newest view."""

import itertools
import time
from collections.abc import Callable
from typing import Protocol

import msgspec
from nicegui import ui

from tidegate.model.view import View
from tidegate.web import theme
from tidegate.web.header import PageHeader
from tidegate.web.tabs.brokers.panel import BrokersPanel
from tidegate.web.tabs.decisions.panel import DecisionsPanel
from tidegate.web.tabs.devices.panel import DevicesPanel
from tidegate.web.tabs.gateways.panel import GatewaysPanel
from tidegate.web.tabs.overview.panel import OverviewPanel
from tidegate.web.tabs.pipeline.panel import PipelinePanel
from tidegate.web.tabs.rules.panel import RulesPanel
from tidegate.web.tabs.send_rates.panel import SendRatesPanel
from tidegate.web.values.ages import STALE_S, view_age_s
from tidegate.web.values.publish_rates import PublishRates, RateWindow
from tidegate.web.values.source import Source

REFRESH_S = 1.0
OVERVIEW = "Overview"


class TabPanel(Protocol):
    """What stands behind a tab: elements that exist once, filled with each new view."""

    def show(self, view: View, rates: PublishRates) -> None: ...


class Tab(msgspec.Struct, frozen=True, kw_only=True):
    """A tab appears while the part it is about runs; its panel is made the first time it is looked at."""

    name: str
    runs: Callable[[View], bool]
    panel: Callable[[Source], TabPanel]


TABS = (
    Tab(name=OVERVIEW, runs=lambda _: True, panel=OverviewPanel),
    Tab(name="Send rates", runs=lambda view: bool(view.samples), panel=lambda _: SendRatesPanel()),
    Tab(name="Gateways", runs=lambda view: bool(view.chain.gateways), panel=GatewaysPanel),
    Tab(name="Brokers", runs=lambda view: bool(view.chain.brokers), panel=lambda _: BrokersPanel()),
    Tab(
        name="Pipeline",
        # How the tables are, and what waits, is to be seen above all when no node runs.
        runs=lambda view: bool(view.chain.nodes or view.chain.slices or view.chain.tables),
        panel=PipelinePanel,
    ),
    Tab(
        name="Devices",
        # Before the first one has come, it says how to bring it.
        runs=lambda view: bool(view.chain.gateways or view.identity.key_id),
        panel=DevicesPanel,
    ),
    Tab(name="Rules", runs=lambda view: bool(view.rules.name or view.rules.notices), panel=lambda _: RulesPanel()),
    Tab(name="Decisions", runs=lambda view: bool(view.decisions), panel=lambda _: DecisionsPanel()),
)


def build(source: Source) -> None:
    """One page for one browser."""
    ui.add_head_html(f"<style>{theme.style_sheet()}</style><script>{theme.script()}</script>")
    ui.add_body_html(f"<div id='stale' role='alert' data-limit='{STALE_S}' hidden></div>")
    ui.timer(REFRESH_S, Page(source).refresh)


class Page:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._shown: View | None = None
        self._ticks = itertools.count()
        self._rates = RateWindow()
        self._header = PageHeader(source.set_mode)
        with ui.tabs(on_change=self._show_panel).props("dense align=left no-caps inline-label") as self._tabs:
            self._buttons = {tab.name: ui.tab(tab.name) for tab in TABS}
        self._tabs.value = OVERVIEW
        self._places = {tab.name: ui.element("main").props("role=tabpanel") for tab in TABS}
        self._panels: dict[str, TabPanel] = {}
        self._pulse = ui.element("span").classes("pulse")
        self.refresh()

    def refresh(self) -> None:
        """Show what is new. The pulse tells the browser that the server still answers, and how old its values are."""
        view = self._source.view()
        age_s = view_age_s(view, time.time())
        self._pulse.props(f"data-tick={next(self._ticks)} data-age={age_s or 0.0:.1f}")
        if view == self._shown:
            return
        self._shown = view
        self._header.show(view)
        for tab in TABS:
            self._buttons[tab.name].set_visibility(tab.runs(view))
        self._show_panel()

    def _show_panel(self) -> None:
        """Only the panel that is looked at is kept up to date."""
        if self._shown is None:
            return
        chosen = next((tab for tab in TABS if tab.name == self._tabs.value and tab.runs(self._shown)), TABS[0])
        for name, place in self._places.items():
            place.set_visibility(name == chosen.name)
        if chosen.name not in self._panels:
            with self._places[chosen.name]:
                self._panels[chosen.name] = chosen.panel(self._source)
        self._panels[chosen.name].show(self._shown, self._rates.follow(self._shown.chain.gateways))
