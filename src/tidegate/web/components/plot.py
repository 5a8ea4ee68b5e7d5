"""Panels with lines as ECharts options, pure: axes, colours, and where each label stands.

Panels stand under each other over the same two minutes. Lines carry their name and last value at their right end; as
panels have a fixed height, the labels' places are computed here and never overlap. Colours are the style sheet's.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.web.components.colours import colour
from tidegate.web.values.ages import SPAN_S

ChartOptions = dict[str, Any]

LABEL_PX = 15  # the height of a line of text
_TOP_PX, _LEFT_PX, _RIGHT_PX, _TITLE_PX, _AXIS_PX, _GAP_PX = 6, 44, 130, 26, 24, 14
_STEPS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


class ChartLine(msgspec.Struct, frozen=True, kw_only=True):
    """``points`` are (Unix time, value); ``label`` stands at the end of the line."""

    name: str
    label: str
    hue: str  # a name of the style sheet
    points: tuple[tuple[float, float], ...]
    dashed: bool = False
    stepped: bool = False


class ChartPanel(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    height_px: int
    lines: tuple[ChartLine, ...]
    axis_min: float = 1.0  # the vertical axis reaches at least this far
    free_share: float = 0.0  # of the height, above all lines, for words


def height_px(*panels_px: int) -> int:
    return _TOP_PX + sum(panels_px) + len(panels_px) * (_TITLE_PX + _GAP_PX) - _GAP_PX + _AXIS_PX


def chart(panels: Sequence[ChartPanel], end_s: float) -> ChartOptions:
    """All panels in one chart, under each other, over the same time."""
    options: ChartOptions = {
        "animation": False,
        "tooltip": _tooltip(),
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
    }
    options |= {"grid": [], "title": [], "xAxis": [], "yAxis": [], "series": []}
    top_px = _TOP_PX
    for index, panel in enumerate(panels):
        last = index == len(panels) - 1
        highest = max([0.0, *(value for line in panel.lines for _, value in line.points)])
        top = nice_ceiling(max(panel.axis_min, highest / (1 - panel.free_share)))
        options["title"].append(
            {"text": panel.title, "left": 0, "top": top_px, "padding": 0, "textStyle": text("quiet")}
        )
        top_px += _TITLE_PX
        options["grid"].append({"left": _LEFT_PX, "right": _RIGHT_PX, "top": top_px, "height": panel.height_px})
        options["xAxis"].append(_time_axis(index, end_s, labelled=last))
        options["yAxis"].append(_value_axis(index, top))
        options["series"] += _series(panel, index, top)
        top_px += panel.height_px + (_AXIS_PX if last else _GAP_PX)
    return options


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 3, 4, 6, 8 and their tenfolds that is not below the value: half of it is short, too."""
    magnitude = 10.0 ** math.floor(math.log10(value))
    return next(step * magnitude for step in _STEPS if step * magnitude >= value * (1 - 1e-9))


def label_shifts_px(lines: Sequence[ChartLine], top: float, panel_px: int) -> list[float]:
    """How far each end label moves (down is positive) so that none covers another.

    Upper lines have upper labels; labels of lines that nearly meet keep the lines' order, so that they do not jump.
    """
    wanted = [panel_px * (1 - line.points[-1][1] / top) for line in lines]
    half = [LABEL_PX * (1 + line.label.count("\n")) / 2 for line in lines]
    placed = dict(enumerate(wanted))
    order = sorted(placed, key=lambda index: (round(wanted[index] / LABEL_PX), index))
    for above, below in itertools.pairwise(order):
        placed[below] = max(placed[below], placed[above] + half[above] + half[below])
    floor_px = panel_px + LABEL_PX / 2
    for index in reversed(order):
        placed[index] = min(placed[index], floor_px - half[index])
        floor_px = placed[index] - half[index]
    return [placed[index] - wanted[index] for index in range(len(lines))]


def _series(panel: ChartPanel, index: int, top: float) -> list[ChartOptions]:
    shifts = label_shifts_px(panel.lines, top, panel.height_px)
    return [
        {
            "type": "line",
            "name": line.name,
            "id": f"{index}-{line.name}",
            "xAxisIndex": index,
            "yAxisIndex": index,
            "data": [[at_s * 1000, round(value, 3)] for at_s, value in line.points],
            "z": 3 if line.dashed else 2,
            "showSymbol": False,
            "step": "end" if line.stepped else False,
            "lineStyle": {"color": colour(line.hue), "width": 2, "type": "dashed" if line.dashed else "solid"},
            "itemStyle": {"color": colour(line.hue)},
            "emphasis": {"disabled": True},
            "endLabel": _end_label(line, shift),
        }
        for line, shift in zip(panel.lines, shifts, strict=True)
    ]


def _end_label(line: ChartLine, shift_px: float) -> ChartOptions:
    label = {"show": True, "formatter": line.label, "offset": [0, shift_px], "distance": 6, "lineHeight": LABEL_PX}
    if line.hue.startswith("class-"):
        # Colours of categories are too bright for small text: a square has the colour, and the words are ink.
        label |= {"formatter": f"{{square|■}} {line.label}", "rich": {"square": {"color": colour(line.hue)}}}
        return label | text("ink")
    # So is the grey of past runs.
    return label | text("quiet" if line.hue == "past" else line.hue)


def _time_axis(index: int, end_s: float, *, labelled: bool) -> ChartOptions:
    end_ms = end_s * 1000
    return {
        "type": "time",
        "gridIndex": index,
        "min": end_ms - SPAN_S * 1000,
        "max": end_ms,
        "splitNumber": 4,
        "axisLine": {"lineStyle": {"color": colour("line")}},
        "axisTick": {"show": False},
        "splitLine": {"show": False},
        "axisLabel": {"show": labelled, "formatter": "{HH}:{mm}:{ss}", "hideOverlap": True} | text("quiet"),
        "axisPointer": {"label": {"show": False}, "lineStyle": {"color": colour("quiet")}},
    }


def _value_axis(index: int, top: float) -> ChartOptions:
    return {
        "type": "value",
        "gridIndex": index,
        "min": 0,
        "max": top,
        "interval": top / 2,
        "splitLine": {"lineStyle": {"color": colour("line")}},
        "axisLabel": text("quiet"),
    }


def text(hue: str) -> ChartOptions:
    return {"color": colour(hue), "fontSize": 12, "fontWeight": "normal"}


def _tooltip() -> ChartOptions:
    return {
        "trigger": "axis",
        "confine": True,
        "transitionDuration": 0,
        "backgroundColor": colour("paper"),
        "borderColor": colour("line"),
        "textStyle": {"color": colour("ink"), "fontSize": 12},
        ":formatter": "tidegateTooltip",
    }
