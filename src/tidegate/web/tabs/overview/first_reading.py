"""What to do while nothing has arrived, below the chain, pure."""

from html import escape

from tidegate.model.first_reading import FirstReading
from tidegate.model.view import View
from tidegate.web.components.pasted import line_html
from tidegate.web.values.first_lines import mqtt_line, nothing_has_arrived

NOTHING = "Nothing has arrived yet: paste this into a shell to send a first reading; the tab Devices says more."


def first_reading_html(view: View, first: FirstReading | None) -> str:
    """Empty from the first reading on."""
    if first is None or not nothing_has_arrived(view):
        return ""
    return f"<p>{escape(NOTHING)}</p>{line_html(mqtt_line(first))}"
