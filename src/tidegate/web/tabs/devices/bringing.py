"""How devices come, as HTML, pure: addresses, the lines of a first reading, and the command for more."""

from html import escape

from tidegate.model.first_reading import FirstReading
from tidegate.report.pasting import place_of
from tidegate.web.components.pasted import lines_html
from tidegate.web.values.first_lines import lines

MORE = ("For another device", "tidegate device add NAME")
NO_LINE = (
    "There is no line to paste: no gateway is known to this controller, the installation has no keys yet, or the "
    "device hello is revoked. 'tidegate device add NAME' prints the line of any device."
)


def bringing_html(first: FirstReading | None) -> str:
    if first is None:
        return f"<p class='quiet'>{escape(NO_LINE)}</p>"
    http = "" if first.http is None else f", with HTTP at {place_of(first.http)}"
    where = f"Devices connect with MQTT at {place_of(first.mqtt)}{http}; topic telemetry/<device>."
    return f"<p>{escape(where)}</p>{lines_html([*lines(first), MORE])}"
