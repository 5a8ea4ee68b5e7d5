"""The picture of send-rate control, pure: rates and their limit, then what devices are asked for, then the nodes."""

from collections.abc import Sequence

from tidegate.model.actions import Advise, ScaleNodes
from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, View, seconds
from tidegate.web.components.lines import LINES_MAX, RATES_TITLE, end_s, fitted, line, named, rates, recent, tops
from tidegate.web.components.marks import decision_marks, phase_marks
from tidegate.web.components.plot import ChartLine, ChartOptions, ChartPanel, chart, height_px
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.asked import Asked, asked_of, others_of, told, untold
from tidegate.web.values.words import is_shadow

_RATES_PX, _INTERVAL_PX, _NODES_PX, _WORD_PX = 170, 130, 60, 20
SEND_RATES_PX = height_px(_RATES_PX, _INTERVAL_PX, _NODES_PX)
_RATES_PANEL, _INTERVAL_PANEL, _NODES_PANEL = range(3)

# What devices were asked for, or would have been, from a moment on.
AskedFrom = tuple[float, Asked]


def send_rates(view: View) -> ChartOptions:
    """Decisions about advice stand under the rates that caused them, those about nodes under the nodes."""
    shown, shadow = recent(view.samples), is_shadow(view.mode)
    panels = (
        ChartPanel(title=RATES_TITLE, height_px=_RATES_PX, lines=rates(shown)),
        ChartPanel(
            title=_interval_title(is_shadow=shadow),
            height_px=_INTERVAL_PX,
            lines=_intervals(view, shown),
            free_share=_WORD_PX / _INTERVAL_PX,
        ),
        ChartPanel(
            title="Processing nodes",
            height_px=_NODES_PX,
            lines=_nodes(shown, is_shadow=shadow),
            axis_min=_even_above(shown),
        ),
    )
    options = chart(panels, end_s(shown))
    if shown:
        top = tops(options)[_INTERVAL_PANEL]
        options["series"].append(phase_marks(shown, _INTERVAL_PANEL, top, is_shadow=shadow))
        decisions = about_send_rates(view.decisions)
        options["series"] += decision_marks(decisions, end_s(shown), tops(options), _panel_of)
    return options


def about_send_rates(decisions: Sequence[Decision]) -> list[Decision]:
    return [decision for decision in decisions if isinstance(decision.action, Advise | ScaleNodes)]


def _panel_of(decision: Decision) -> int:
    return _NODES_PANEL if isinstance(decision.action, ScaleNodes) else _RATES_PANEL


def _interval_title(*, is_shadow: bool) -> str:
    if is_shadow:
        return "Interval that would be advised, s (shadow: nobody is told)"
    return "Advised interval, s (0: the devices' default)"


def _intervals(view: View, shown: Sequence[Sample]) -> tuple[ChartLine, ...]:
    """What devices were told; in shadow mode what they would have been told, dashed, beside what still holds them."""
    so_far = [(sample.at_s, told(sample)) for sample in shown]
    would_be = _untold(view, shown) if is_shadow(view.mode) else []
    apart = {name for _, asked in (*so_far, *would_be) for name in asked.classes}
    others = others_of(view, (*apart, *asked_of(view).dead_bands))
    if would_be and not any(asked.holds_anybody for _, asked in so_far):
        so_far = []
    return (*_lines(would_be, others), *_lines(so_far, others))[:LINES_MAX]


def _untold(view: View, shown: Sequence[Sample]) -> list[AskedFrom]:
    """Decisions of which nobody heard, from the one that counts where the chart begins up to now."""
    made = untold(view.decisions)
    if not made or not shown:
        return []
    begin_s, last_s = end_s(shown) - SPAN_S, max(end_s(shown), made[-1][0])
    before = [(begin_s, asked) for at_s, asked in made if at_s <= begin_s]
    return [*before[-1:], *((at_s, asked) for at_s, asked in made if at_s > begin_s), (last_s, made[-1][1])]


def _lines(moments: Sequence[AskedFrom], others: str) -> tuple[ChartLine, ...]:
    """One line for all classes that are asked for the same; of more than four, those that are held most."""
    if not moments:
        return ()
    is_told = moments[-1][1].is_told
    alike: dict[tuple[float, ...], list[str]] = {}
    for name in (*sorted({name for _, asked in moments for name in asked.classes} - {others}), others):
        alike.setdefault(tuple(asked.interval_of(name) for _, asked in moments), []).append(name)
    most_held = sorted(alike.items(), key=lambda item: -max(item[0]))[:LINES_MAX]
    lines = []
    for place, (values, names) in enumerate(sorted(most_held, key=lambda item: item[1]), start=1):
        name = "" if len(alike) == 1 else ", ".join(names)
        lines.append(
            ChartLine(
                name=(name or "advised interval") if is_told else f"{name or 'interval'}, would be",
                label=_label(name, values[-1], is_told=is_told),
                hue=f"class-{place}" if name else "tide",
                points=tuple((at_s, value) for (at_s, _), value in zip(moments, values, strict=True)),
                dashed=not is_told,
                stepped=True,
            )
        )
    return tuple(lines)


def _label(names: str, interval_s: float, *, is_told: bool) -> str:
    value = seconds(interval_s) if interval_s > 0 else "default"
    if not names:
        every = f"every {value}" if interval_s > 0 else value
        return every if is_told else f"would be\n{every}"
    return fitted(names, value)


def _even_above(shown: Sequence[Sample]) -> float:
    """The axis counts nodes: its middle is a whole number, too."""
    most = max((max(sample.nodes_working, sample.nodes_wanted or 0) for sample in shown), default=0)
    return 2.0 * (most // 2 + 1)


def _nodes(shown: Sequence[Sample], *, is_shadow: bool) -> tuple[ChartLine, ...]:
    word = named("would be" if is_shadow else "wanted")
    return (
        *line("working", "ink", shown, lambda s: s.nodes_working, named("working"), stepped=True),
        *line("wanted", "tide", shown, lambda s: s.nodes_wanted, word, dashed=True, stepped=True),
    )
