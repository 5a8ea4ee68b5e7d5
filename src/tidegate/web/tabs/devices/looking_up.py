"""One device: a field for its name, and below it what the register and the gateways say when it is asked about."""

import time
from html import escape

from nicegui import ui

from tidegate.model.clients import DeviceReport
from tidegate.model.device_words import lines
from tidegate.model.errors import TidegateError
from tidegate.web.components.elements import heading
from tidegate.web.values.source import Source

ASKING = "<p class='quiet'>Gateways are asked …</p>"


class LookUp:
    def __init__(self, source: Source) -> None:
        self._source = source
        heading("Look up a device")
        self._name = ui.input(placeholder="its name, then Enter").props(
            'dense outlined aria-label="Name of the device" autocomplete=off spellcheck=false'
        )
        self._name.classes("look-up").on("keydown.enter", self._ask)
        self._found = ui.html(sanitize=False).props("role=status")

    async def _ask(self) -> None:
        name = (self._name.value or "").strip()
        if not name:
            return
        self._found.content = ASKING
        try:
            report = await self._source.look_up(name)
        except TidegateError as error:
            self._found.content = f"<p class='caution'>▲ {escape(str(error))}</p>"
        else:
            self._found.content = report_html(report, time.time())


def report_html(report: DeviceReport, now_s: float) -> str:
    """It stands as it was said: the time tells when that was."""
    mark = " class='danger'" if report.entry.is_revoked else ""
    said = "".join(f"<p{mark if line.startswith('Now: ') else ''}>{escape(line)}</p>" for line in lines(report, now_s))
    return f"<div class='said'>{said}<p class='quiet small'>Asked at <time data-at='{now_s:.3f}'></time>.</p></div>"
