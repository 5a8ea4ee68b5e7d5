"""Strategies side by side: one column each, the run without protection in grey behind every one of them.

Rows of panels: what arrives against demand and capacity, how old the oldest waiting message is, the advised interval,
and the number of nodes where it changes.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tidegate.report.palette import light
from tidegate.sim.result import Result, Series
from tidegate.sim.scenario import Scenario

UNPROTECTED = "none"
STYLE: dict[Any, Any] = {
    "axes.edgecolor": light("line"),
    "axes.labelcolor": light("quiet"),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 8,
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "tidegate",
    "text.color": light("ink"),
    "xtick.color": light("quiet"),
    "ytick.color": light("quiet"),
}
_LABEL_GAP = 0.09  # between two labels, as a share of the panel's height


class PlotLine(NamedTuple):
    label: str
    values: Sequence[float]
    colour: str
    dashed: bool = False


PlotLines = Callable[[Result], list[PlotLine]]


class PlotPanel(NamedTuple):
    title: str
    lines: PlotLines


def figure(scenario: Scenario, results: Sequence[Result]) -> Figure:
    """All strategies of a scenario; who is not protected gets a column of its own only where nothing else was tried."""
    unprotected = next((result for result in results if result.policy == UNPROTECTED), None)
    shown = [result for result in results if result is not unprotected] or list(results)
    behind = unprotected if unprotected not in shown else None
    panels = _panels(scenario, shown, behind)
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(max(6.4, 4.2 * len(shown)), 0.6 + 1.9 * len(panels)), layout="constrained")
        FigureCanvasAgg(drawn)
        grid = drawn.subplots(len(panels), len(shown), sharex=True, sharey="row", squeeze=False)
        for row, panel in enumerate(panels):
            lines = [panel.lines(result) for result in shown]
            top = max((max(line.values) for column in lines for line in column), default=0.0)
            for column, result in enumerate(shown):
                _draw(grid[row][column], result.series.at_s, lines[column], 1.05 * top or 1.0)
        for column, result in enumerate(shown):
            grid[0][column].set_title(f"{result.strategy}\n", loc="left", color=light("ink"), fontweight="bold")
            grid[-1][column].set_xlabel("s")
        for row, panel in enumerate(panels):
            grid[row][0].annotate(
                panel.title, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", color=light("quiet")
            )
    return drawn


def save(drawn: Figure, target: Any, kind: str) -> None:
    """As ``png`` or ``svg``; the same figure gives the same bytes."""
    with mpl.rc_context(STYLE):
        drawn.savefig(target, format=kind, dpi=144, metadata={"Date": None} if kind == "svg" else None)


def _panels(scenario: Scenario, shown: Sequence[Result], behind: Result | None) -> list[PlotPanel]:
    default_s = scenario.told_interval_s

    def rates(result: Result) -> list[PlotLine]:
        series = result.series
        return [
            PlotLine("demand", series.demand_per_s, "past"),
            PlotLine("capacity", series.capacity_per_s, "caution", dashed=True),
            PlotLine("arrives", _smooth(series.arrivals), "tide"),
        ]

    def ages(result: Result) -> list[PlotLine]:
        grey = [] if behind is None else [PlotLine(behind.strategy, behind.series.head_age_s, "past")]
        return [*grey, PlotLine(result.strategy, result.series.head_age_s, "tide")]

    def intervals(result: Result) -> list[PlotLine]:
        default = [default_s] * len(result.series.at_s)
        return [
            PlotLine("default", default, "caution", dashed=True),
            PlotLine("advised", [max(default_s, interval_s) for interval_s in result.series.interval_s], "tide"),
        ]

    def nodes(result: Result) -> list[PlotLine]:
        most = [scenario.service.nodes_max] * len(result.series.at_s)
        return [
            PlotLine("at most", most, "caution", dashed=True),
            PlotLine("working", result.series.nodes_working, "tide"),
        ]

    panels = [
        PlotPanel("messages per second", rates),
        PlotPanel("age of the oldest waiting message, s", ages),
        PlotPanel("interval, s", intervals),
    ]
    if any(_changes(result.series) for result in shown):
        panels.append(PlotPanel("nodes", nodes))
    return panels


def _changes(series: Series) -> bool:
    return len(set(series.nodes_working)) > 1


def _smooth(counts: Sequence[int], span: int = 5) -> list[float]:
    """The mean over the last seconds: single seconds of few devices are mostly noise."""
    means = []
    for place in range(len(counts)):
        window = counts[max(0, place + 1 - span) : place + 1]
        means.append(sum(window) / len(window))
    return means


def _draw(axes: Axes, at_s: Sequence[float], lines: Sequence[PlotLine], top: float) -> None:
    for line in lines:
        axes.plot(
            at_s,
            line.values,
            color=light(line.colour),
            linewidth=1.0 if line.dashed else 1.4,
            linestyle=(0, (4, 3)) if line.dashed else "solid",
        )
    axes.set_xlim(0, at_s[-1])
    axes.set_ylim(0, top)
    axes.grid(axis="y", color=light("line"), linewidth=0.5)
    axes.set_axisbelow(True)
    places = _spread([line.values[-1] / top for line in lines])
    for line, place in zip(lines, places, strict=True):
        axes.annotate(
            line.label, (1, place), (4, 0), xycoords="axes fraction", textcoords="offset points",
            color=light(line.colour), verticalalignment="center",
        )  # fmt: skip


def _spread(heights: Sequence[float]) -> list[float]:
    """The same heights, moved apart where labels would lie on each other, and kept in their order."""
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    found = list(heights)
    for below, above in itertools.pairwise(order):
        found[above] = max(found[above], found[below] + _LABEL_GAP)
    return found
