"""The top of every page: name, installation, the state in one sentence, and the switches an operator has."""

from collections.abc import Awaitable, Callable, Mapping
from html import escape

from nicegui import events, ui

from tidegate.model.decisions import MODES, Mode
from tidegate.model.errors import TidegateError
from tidegate.model.view import View, state_of
from tidegate.web.components.stations import alarms_html
from tidegate.web.values.words import MODE_SENTENCES, SEVERITY_WORDS, mode_word

MODE_WORDS = {mode: mode.capitalize() for mode in MODES}


class PageHeader:
    def __init__(self, set_mode: Callable[[Mapping[str, object]], Awaitable[Mode]]) -> None:
        self._set_mode = set_mode
        self._mode = Mode()
        with ui.element("header").classes("frame bar"):
            self._name = ui.html(sanitize=False)
            with ui.element("div").classes("controls"):
                self._word = ui.html(sanitize=False).classes("mode")
                with ui.element("div").classes("switch").props('role=group aria-label="Protection"'):
                    self._switch = ui.toggle(MODE_WORDS, on_change=self._switched)
                    self._switch.props("no-caps dense unelevated toggle-text-color=paper")
                self._freeze = ui.button("Freeze", on_click=self._freeze_or_release).props("outline no-caps dense")
        self._state = ui.html(sanitize=False)
        self._alarms = ui.html(sanitize=False)
        with ui.dialog() as self._question, ui.card():
            ui.label("Freeze all acting?")
            ui.label("Advice in force runs out, devices return to their default interval. Nothing acts until released.")
            with ui.element("div").classes("bar"):
                ui.button("Freeze", on_click=lambda: self._question.submit(True)).props(
                    "no-caps color=negative text-color=paper"
                )
                ui.button("Cancel", on_click=self._question.close).props("flat no-caps")

    def show(self, view: View) -> None:
        self._mode = view.mode
        self._name.content = _name(view)
        self._state.content = _state(view)
        self._alarms.content = alarms_html(view.alarms)
        word = mode_word(view.mode)
        self._word.content = f"<b>{escape(word)}</b> <span class='quiet'>{MODE_SENTENCES.get(word, '')}</span>"
        self._switch.value = view.mode.send_rate if view.mode.send_rate in MODES else None
        self._freeze.text = "Release" if view.mode.frozen else "Freeze"

    async def _switched(self, event: events.ValueChangeEventArguments[str | None]) -> None:
        if event.value is not None and event.value != self._mode.send_rate:
            await self._change(send_rate=event.value)

    async def _freeze_or_release(self) -> None:
        if self._mode.frozen or await self._question:
            await self._change(frozen=not self._mode.frozen)

    async def _change(self, **fields: object) -> None:
        try:
            await self._set_mode(fields)  # not what this page shows of the rest: it may be old
        except TidegateError as error:
            ui.notify(str(error), type="negative")


def _name(view: View) -> str:
    leads = "this controller leads" if view.leader == view.controller else f"{view.leader or 'no controller'} leads"
    place = f"{view.name} · {view.controller} · {leads}"
    return f"<h1>Tidegate</h1> <span class='quiet'>{escape(place)}</span>"


def _state(view: View) -> str:
    state = state_of(view.samples, view.mode)
    word = escape(SEVERITY_WORDS.get(state.severity, state.severity))
    return (
        f"<p class='state' role='status'><span class='severity {escape(state.severity)}'>{word}</span>"
        f"<span class='sentence'>{escape(state.sentence)}</span></p>"
    )
