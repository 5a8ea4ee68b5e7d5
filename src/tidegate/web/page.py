"""The dashboard: the frame, the tabs of the parts that run, and one timer that shows the newest view."""

import itertools
import time
from collections.abc import Callable

import msgspec
from nicegui import ui

from tidegate.model.view import View
from tidegate.web import panels, tables, theme
from tidegate.web.frame import Frame
from tidegate.web.gateways.panel import Gateways
from tidegate.web.publish_rates import RateWindow
from tidegate.web.send_rates.panel import SendRates
from tidegate.web.source import Source
from tidegate.web.words import STALE_S, view_age_s

REFRESH_S = 1.0
OVERVIEW = "Overview"


class Tab(msgspec.Struct, frozen=True, kw_only=True):
    """A tab appears while its part runs; its panel is made the first time it is looked at."""

    name: str
    runs: Callable[[View], bool]
    panel: Callable[[Source], panels.Panel]


TABS = (
    Tab(name=OVERVIEW, runs=lambda _: True, panel=panels.Overview),
    Tab(name="Send rates", runs=lambda view: bool(view.samples), panel=lambda _: SendRates()),
    Tab(name="Gateways", runs=lambda view: bool(view.chain.gateways), panel=Gateways),
    Tab(
        name="Brokers",
        runs=lambda view: bool(view.chain.brokers),
        panel=lambda _: panels.Tables({"Brokers": lambda view, _: tables.brokers(view)}),
    ),
    Tab(
        name="Pipeline",
        runs=lambda view: bool(view.chain.nodes),
        panel=lambda _: panels.Tables({"Processing nodes": lambda view, _: tables.nodes(view)}),
    ),
    Tab(name="Decisions", runs=lambda view: bool(view.decisions), panel=lambda _: panels.Decisions()),
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
        self._frame = Frame(source.set_mode)
        with ui.tabs(on_change=self._show_panel).props("dense align=left no-caps inline-label") as self._tabs:
            self._buttons = {tab.name: ui.tab(tab.name) for tab in TABS}
        self._tabs.value = OVERVIEW
        self._places = {tab.name: ui.element("main").props("role=tabpanel") for tab in TABS}
        self._panels: dict[str, panels.Panel] = {}
        self._pulse = ui.element("span").classes("pulse")
        self.refresh()

    def refresh(self) -> None:
        """Show what is new. The pulse tells the browser that somebody still answers, and how old the values are."""
        view = self._source.view()
        age_s = view_age_s(view, time.time())
        self._pulse.props(f"data-tick={next(self._ticks)} data-age={age_s or 0.0:.1f}")
        if view == self._shown:
            return
        self._shown = view
        self._frame.show(view)
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
