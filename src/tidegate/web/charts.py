"""Lines from samples, pure: those that more than one chart has, and the chart of the first screen."""

import math
from collections.abc import Callable, Sequence

from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, seconds
from tidegate.web.marks import decision_marks
from tidegate.web.plot import SPAN_S, Line, Options, Panel, chart, height_px
from tidegate.web.words import number

AGE_AXIS_S_MIN = 2.0
RATES_TITLE = "Messages per second"
LABEL_LETTERS_MAX = 16
_AGE_PX, _RATES_PX = 190, 130
OVERVIEW_PX = height_px(_AGE_PX, _RATES_PX)


def overview(samples: Sequence[Sample], decisions: Sequence[Decision], past: Sequence[Sample]) -> Options:
    """The age of data above, what arrives and what is processed below; decisions stand at their moment."""
    shown = recent(samples)
    grey = _past_line(past, shown)
    age = line("age of data", "ink", shown, lambda sample: sample.age_s, lambda value: f"now {seconds(value)}")
    panels = (
        Panel(title="Age of data, s", height_px=_AGE_PX, lines=(*grey, *age), axis_min=AGE_AXIS_S_MIN),
        Panel(title=RATES_TITLE, height_px=_RATES_PX, lines=rates(shown)),
    )
    options = chart(panels, end_s(shown))
    if shown:
        options["series"] += decision_marks(decisions, end_s(shown), tops(options), lambda _: 0)
    return options


def rates(shown: Sequence[Sample]) -> tuple[Line, ...]:
    """What arrives and what is processed, with what bounds it; in grey what devices would send if nobody held them."""
    known = [sample for sample in shown if sample.capacity_per_s is not None]
    wanted = [sample for sample in shown if sample.demand_per_s is not None]
    return (
        *line("demand", "past", wanted, lambda s: s.demand_per_s or 0.0, named("demand")),
        *line("capacity", "caution", known, lambda s: s.capacity_per_s or 0.0, named("capacity"), dashed=True),
        *line("arriving", "ink", shown, lambda s: s.arrival_per_s, named("arriving")),
        *line("processed", "tide", shown, lambda s: s.departure_per_s, named("processed")),
    )


def recent(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples of the last two minutes, at most one per second: a finer line would look the same."""
    if not samples:
        return ()
    last_s = samples[-1].at_s
    kept: list[Sample] = []
    for sample in samples:
        if sample.at_s < last_s - SPAN_S:
            continue
        if kept and math.floor(sample.at_s) == math.floor(kept[-1].at_s):
            kept.pop()
        kept.append(sample)
    return tuple(kept)


def end_s(shown: Sequence[Sample]) -> float:
    return shown[-1].at_s if shown else 0.0


def tops(options: Options) -> list[float]:
    return [axis["max"] for axis in options["yAxis"]]


def line(
    name: str,
    hue: str,
    samples: Sequence[Sample],
    value: Callable[[Sample], float],
    label: Callable[[float], str],
    *,
    dashed: bool = False,
    stepped: bool = False,
) -> tuple[Line, ...]:
    """One line, or none where nothing is known."""
    if not samples:
        return ()
    points = tuple((sample.at_s, value(sample)) for sample in samples)
    return (Line(name=name, label=label(points[-1][1]), hue=hue, points=points, dashed=dashed, stepped=stepped),)


def named(name: str) -> Callable[[float], str]:
    return lambda value: f"{name} {number(value)}"


def fitted(name: str, value: str) -> str:
    """A label of one row where it fits beside the chart, else of two."""
    if len(name) + len(value) < LABEL_LETTERS_MAX:
        return f"{name} {value}"
    return (name if len(name) <= LABEL_LETTERS_MAX else name[: LABEL_LETTERS_MAX - 1] + "…") + f"\n{value}"


def _past_line(past: Sequence[Sample], shown: Sequence[Sample]) -> tuple[Line, ...]:
    if not shown:
        return ()
    last_s = shown[-1].at_s
    visible = recent([sample for sample in past if last_s - SPAN_S <= sample.at_s <= last_s])
    return line(
        "without protection", "past", visible, lambda s: s.age_s, lambda v: f"without\nprotection\n{seconds(v)}"
    )
