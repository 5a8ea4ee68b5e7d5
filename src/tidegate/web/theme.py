"""Colours, type and spacing: one style sheet, which follows the system's preference for light or dark.

Charts are drawn as SVG and name the same custom properties, so they change with the page without the server's help.
"""

from pathlib import Path

from tidegate.report.palette import COLOURS

_STYLE_SHEET = Path(__file__).with_name("dashboard.css")
_SCRIPT = Path(__file__).with_name("dashboard.js")


def style_sheet() -> str:
    light, dark = (
        "".join(f"--{name}:{shades[index]};" for name, shades in COLOURS.items())
        + "--q-primary:var(--tide)!important;--q-negative:var(--danger)!important;"
        for index in (0, 1)
    )
    properties = f":root,body{{{light}}}@media (prefers-color-scheme: dark){{:root,body{{{dark}}}}}"
    return properties + _STYLE_SHEET.read_text(encoding="utf-8")


def script() -> str:
    return _SCRIPT.read_text(encoding="utf-8")
