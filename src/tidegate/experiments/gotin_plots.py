"""Plots of the send-rate experiments: published values hollow, ours filled, spread as bars, the command below."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from tidegate.experiments import gotin_case
from tidegate.experiments.gotin_runs import ADAPTIVE, COUPLED_ADAPTIVE
from tidegate.experiments.mean_intervals import grouped
from tidegate.experiments.running import ReportRow
from tidegate.experiments.tuning import ORACLE
from tidegate.report.palette import light
from tidegate.report.tables import show
from tidegate.sim import page, plots

# Okabe and Ito's colours, for categories, without those that are too light for text; ours has the accent.
SERIES = ("#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#0072b2")
TABLE1 = (
    ("processed", "processed messages"),
    ("delay_mean_s", "mean queueing delay, s"),
    ("delay_max_s", "longest queueing delay, s"),
    ("interval_mean_s", "mean send interval, s"),
    ("nodes_mean", "nodes"),
)
UNPROTECTED = "none"
COLUMNS = "ci95: half the width of the 95 % interval over the held-out seeds. Delays are the time in the queue."
FIG5 = (*TABLE1[:2], TABLE1[3])


def table1(table: Sequence[ReportRow], rows: Sequence[ReportRow], out: Path) -> None:
    drawn = _figure(len(TABLE1), 3.2, 0.34 * len(table) + 1.2)
    with mpl.rc_context(plots.STYLE):
        for place, (axes, (name, title)) in enumerate(
            zip(drawn.subplots(1, len(TABLE1), sharey=True), TABLE1, strict=True)
        ):
            _bars(axes, table, name)
            axes.set_title(title, loc="left", color=light("ink"))
            if place == 0:
                axes.set_yticks(range(len(table)), [row["strategy"] for row in table])
                axes.invert_yaxis()
    seeds = len({row["seed"] for row in rows})
    caption = f"Filled: ours, mean over six overload shares and {seeds} held-out seeds, bars: 95 %. Hollow: published."
    _save(drawn, out / "gotin-table1", "Table 1 of Gotin et al. beside ours", table, caption)


def fig5(table: Sequence[ReportRow], out: Path) -> None:
    """Above the document's strategies and ours with provisioning of its own, below policies on static provisioning."""
    rows = {
        "the document's strategies, and ours": (*gotin_case.PUBLISHED, COUPLED_ADAPTIVE),
        "policies, all with the maximum of nodes": tuple(
            row["strategy"]
            for row in table
            if row["share_percent"] == table[0]["share_percent"]
            and row["strategy"] not in (*gotin_case.PUBLISHED, COUPLED_ADAPTIVE)
        ),
    }
    drawn = _figure(len(FIG5), 4.8, 7.0)
    with mpl.rc_context(plots.STYLE):
        grid = drawn.subplots(len(rows), len(FIG5), squeeze=False)
        for line, (what, strategies) in zip(grid, rows.items(), strict=True):
            for axes, (name, title) in zip(line, FIG5, strict=True):
                _lines(axes, table, strategies, name)
                axes.set_title(f"{title}: {what}" if axes is line[0] else title, loc="left", color=light("ink"))
                axes.set_xlabel("overload share, %")
    _save(drawn, out / "gotin-fig5", "Figure 5 of Gotin et al., ours", table, "Bars: 95 % over the held-out seeds.")


def _lines(axes: Axes, table: Sequence[ReportRow], strategies: Sequence[str], name: str) -> None:
    ends = []
    for place, strategy in enumerate(strategies):
        own = [row for row in table if row["strategy"] == strategy]
        shares, values = [row["share_percent"] for row in own], [row[name] for row in own]
        colour = _colour(strategy, place)
        width = 2.2 if strategy in (ADAPTIVE, COUPLED_ADAPTIVE) else 1.1
        errors = [row[f"{name}_ci95"] for row in own]
        axes.errorbar(shares, values, yerr=errors, color=colour, lw=width, marker="o", ms=3, capsize=2)
        ends.append((values[-1], strategy, colour))
    axes.set_ylim(bottom=0)
    _label_ends(axes, ends, max(gotin_case.NODES_MAX))
    axes.set_xticks(list(gotin_case.NODES_MAX))


def hard(table: Sequence[ReportRow], out: Path) -> None:
    """Processed messages against delay, one panel per scenario: up and left is better.

    Without protection delays are a hundred times as long: that point would leave no room for the others.
    """
    protected = [row for row in table if row["strategy"] != UNPROTECTED]
    scenarios = grouped(protected, lambda row: row["scenario"])
    drawn = _figure(len(scenarios), 3.6, 4.0)
    with mpl.rc_context(plots.STYLE):
        for axes, (scenario, own) in zip(drawn.subplots(1, len(scenarios)), scenarios.items(), strict=True):
            for place, row in enumerate(own):
                colour = _colour(row["strategy"], place)
                axes.errorbar(
                    max(row["delay_all_mean_s"], 0.01),
                    row["processed"],
                    xerr=row["delay_all_mean_s_ci95"],
                    yerr=row["processed_ci95"],
                    color=colour,
                    marker="o",
                    ms=6 if row["strategy"] == ADAPTIVE else 4,
                )
                axes.annotate(
                    row["strategy"],
                    (max(row["delay_all_mean_s"], 0.01), row["processed"]),
                    xytext=(5, 4 if place % 2 else -10),
                    textcoords="offset points",
                    color=colour,
                )
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_title(scenario, loc="left", color=light("ink"))
            axes.set_xlabel("mean queueing delay, s")
    drawn.axes[0].set_ylabel("processed messages")
    caption = "Up and left is better; bars: 95 %. The run without protection is in the table."
    _save(drawn, out / "gotin-hard", "Harder than the case study", table, caption)


def _figure(columns: int, width: float, height: float) -> Figure:
    drawn = Figure(figsize=(width * columns, height), layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


def _bars(axes: Axes, table: Sequence[ReportRow], name: str) -> None:
    for place, row in enumerate(table):
        ours = row["strategy"] in (ADAPTIVE, COUPLED_ADAPTIVE)
        colour = light("tide") if ours else light("past")
        axes.barh(place, row[name], xerr=row[f"{name}_ci95"], height=0.6, color=colour, ecolor=light("ink"))
        if f"{name}_published" in row:
            axes.plot(row[f"{name}_published"], place, marker="o", ms=6, mfc="none", mec=light("ink"), ls="")


def _colour(strategy: str, place: int) -> str:
    if strategy in (ADAPTIVE, COUPLED_ADAPTIVE):
        return light("tide")
    return light("ink") if strategy == ORACLE else SERIES[place % len(SERIES)]


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]], at: float) -> None:
    """At the lines' ends, apart from each other."""
    top = axes.get_ylim()[1]
    below = -1.0
    for value, text, colour in sorted(ends):
        place = max(value, below + 0.04 * top)
        axes.annotate(text, (at, place), xytext=(4, 0), textcoords="offset points", color=colour, va="center")
        below = place
    axes.set_xlim(0, at * 1.55)


def _save(drawn: Figure, path: Path, title: str, table: Sequence[ReportRow], caption: str) -> None:
    plots.save(drawn, path.with_suffix(".png"), "png")
    heads = list(dict.fromkeys(key for row in table for key in row))
    cells = [[show(row[head]) if head in row else "" for head in heads] for row in table]
    command = f"tidegate reproduce {path.name}"
    text = page.page(title, "", drawn, [(heads, cells)], key=caption, caption=COLUMNS, command=command)
    path.with_suffix(".html").write_text(text, encoding="utf-8")
