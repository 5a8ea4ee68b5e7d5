"""A run as one HTML page that needs nothing from elsewhere: the figure, the tables, and how to repeat it."""

import html
import io
import re
from collections.abc import Sequence

from matplotlib.figure import Figure

from tidegate.report.palette import COLOURS
from tidegate.sim import plots

PageTable = tuple[Sequence[str], Sequence[Sequence[str]]]  # heads, and rows of cells as they are shown

_STYLE_SHEET = """
body{background:var(--paper);color:var(--ink);font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;
padding:0 1rem}
h1{font-size:1.25rem}svg{height:auto;max-width:100%}figure{margin:1rem 0;overflow-x:auto}
figcaption,code{color:var(--quiet);font-size:.85rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1rem 0}
th,td{border-bottom:1px solid var(--line);padding:.25rem .75rem .25rem 0;text-align:right;vertical-align:bottom}
th.text,td.text{text-align:left}
"""


def page(
    title: str, sentence: str, drawn: Figure, tables: Sequence[PageTable], *, key: str, caption: str, command: str
) -> str:
    """``key`` says what is what in the figure, ``caption`` what the columns of the tables mean."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_properties()}{_STYLE_SHEET}</style></head><body><h1>{html.escape(title)}</h1>"
        f"<p>{html.escape(sentence)}</p>"
        f"<figure>{_inline(drawn)}<figcaption>{html.escape(key)} "
        f"<code>{html.escape(command)}</code></figcaption></figure>{''.join(_table(table) for table in tables)}"
        f"<p>{html.escape(caption)}</p></body></html>\n"
    )


def _properties() -> str:
    light, dark = ("".join(f"--{name}:{shades[index]};" for name, shades in COLOURS.items()) for index in (0, 1))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def _inline(drawn: Figure) -> str:
    """The SVG without what names other hosts, with the page's fonts, and in colours that follow the page."""
    text = io.StringIO()
    plots.save(drawn, text, "svg")
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = svg.replace("'DejaVu Sans'", "system-ui")
    for name, (shade, _) in COLOURS.items():
        svg = svg.replace(shade, f"var(--{name})")
    return svg


def _table(table: PageTable) -> str:
    heads, rows = table
    is_text = [not all(cell[:1].isdigit() for cell in column) for column in zip(*rows, strict=True)]

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = (' class="text"' if text else "" for text in is_text)
        return "".join(f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', heads)}</tr></thead><tbody>{body}</tbody></table>"
