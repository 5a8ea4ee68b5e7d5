"""Colours, type and spacing: one style sheet, which follows the system's preference for light or dark.

Charts are drawn as SVG and name the same custom properties, so they change with the page and the server need not know.
"""

from pathlib import Path

_COLOURS = {
    "ink": ("#1b2733", "#e6edf3"),
    "quiet": ("#5a6672", "#9aa7b4"),
    "paper": ("#ffffff", "#10171f"),
    "mist": ("#f4f6f8", "#182028"),
    "line": ("#d8dee4", "#2b3640"),
    "tide": ("#0b7285", "#3bc9db"),
    "good": ("#2b8a3e", "#69db7c"),
    "caution": ("#b35900", "#ffa94d"),
    "danger": ("#c92a2a", "#ff8787"),
    "past": ("#868e96", "#868e96"),
    # For categories: Okabe and Ito's, which people with any kind of colour vision tell apart.
    "class-1": ("#0072b2", "#56b4e9"),
    "class-2": ("#d55e00", "#e69f00"),
    "class-3": ("#009e73", "#009e73"),
    "class-4": ("#cc79a7", "#cc79a7"),
}
_STYLE_SHEET = Path(__file__).with_name("dashboard.css")
_SCRIPT = Path(__file__).with_name("dashboard.js")


def colour(name: str) -> str:
    """A colour by its name, for style sheets and SVG alike."""
    assert name in _COLOURS, name
    return f"var(--{name})"


def style_sheet() -> str:
    light, dark = (
        "".join(f"--{name}:{shades[index]};" for name, shades in _COLOURS.items())
        + "--q-primary:var(--tide)!important;--q-negative:var(--danger)!important;"
        for index in (0, 1)
    )
    properties = f":root,body{{{light}}}@media (prefers-color-scheme: dark){{:root,body{{{dark}}}}}"
    return properties + _STYLE_SHEET.read_text(encoding="utf-8")


def script() -> str:
    return _SCRIPT.read_text(encoding="utf-8")
