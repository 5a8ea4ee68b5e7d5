"""What each chart shows, pure: from samples and decisions to panels, labels and marks."""

import itertools
import math
from collections.abc import Callable, Sequence

from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, seconds
from tidegate.web.plot import SPAN_S, Line, Options, Panel, chart, height_px, text
from tidegate.web.theme import colour
from tidegate.web.words import number, phase_word

AGE_AXIS_S_MIN = 2.0
_AGE_PX, _RATES_PX, _INTERVAL_PX = 190, 130, 150
OVERVIEW_PX = height_px(_AGE_PX, _RATES_PX)
SEND_RATES_PX = height_px(_INTERVAL_PX, _RATES_PX)


def overview(samples: Sequence[Sample], decisions: Sequence[Decision], past: Sequence[Sample]) -> Options:
    """The age of data above, what arrives and what is processed below; decisions stand at their moment in both."""
    shown = recent(samples)
    grey = _past_line(past, shown)
    age = _line("age of data", "ink", shown, lambda sample: sample.age_s, lambda value: f"now {seconds(value)}")
    panels = (
        Panel(
            title="Age of data, s",
            height_px=_AGE_PX,
            lines=(*grey, *age),
            axis_min=AGE_AXIS_S_MIN,
        ),
        Panel(title="Messages per second", height_px=_RATES_PX, lines=rates(shown)),
    )
    options = chart(panels, _end_s(shown))
    if shown:
        options["series"] += _decision_marks(decisions, shown, options["yAxis"][0]["max"])
    return options


def send_rates(samples: Sequence[Sample]) -> Options:
    """The advised interval above, demand and capacity below; shading says the phase."""
    shown = recent(samples)
    interval = _line("advised interval", "tide", shown, lambda sample: sample.interval_s, _interval_label, stepped=True)
    panels = (
        Panel(title="Advised interval, s (0: the devices' default)", height_px=_INTERVAL_PX, lines=interval),
        Panel(title="Messages per second", height_px=_RATES_PX, lines=rates(shown)),
    )
    options = chart(panels, _end_s(shown))
    if options["series"]:
        options["series"][0]["markArea"] = {"silent": True, "data": _phase_areas(shown)}
    return options


def _end_s(shown: Sequence[Sample]) -> float:
    return shown[-1].at_s if shown else 0.0


def rates(shown: Sequence[Sample]) -> tuple[Line, ...]:
    known = [sample for sample in shown if sample.capacity_per_s is not None]
    return (
        *_line("capacity", "caution", known, lambda s: s.capacity_per_s or 0.0, _named("capacity"), dashed=True),
        *_line("arriving", "ink", shown, lambda s: s.arrival_per_s, _named("arriving")),
        *_line("processed", "tide", shown, lambda s: s.departure_per_s, _named("processed")),
    )


def recent(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples of the last two minutes, at most one per second: a finer line would look the same."""
    if not samples:
        return ()
    end_s = samples[-1].at_s
    kept: list[Sample] = []
    for sample in samples:
        if sample.at_s < end_s - SPAN_S:
            continue
        if kept and math.floor(sample.at_s) == math.floor(kept[-1].at_s):
            kept.pop()
        kept.append(sample)
    return tuple(kept)


def _past_line(past: Sequence[Sample], shown: Sequence[Sample]) -> tuple[Line, ...]:
    if not shown:
        return ()
    end_s = shown[-1].at_s
    visible = recent([sample for sample in past if end_s - SPAN_S <= sample.at_s <= end_s])
    return _line(
        "without protection", "past", visible, lambda s: s.age_s, lambda v: f"without\nprotection\n{seconds(v)}"
    )


def _line(
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


def _named(name: str) -> Callable[[float], str]:
    return lambda value: f"{name} {number(value)}"


def _interval_label(value: float) -> str:
    return f"every {seconds(value)}" if value > 0 else "default"


def _decision_marks(decisions: Sequence[Decision], shown: Sequence[Sample], top: float) -> list[Options]:
    """A triangle per decision on the time axis, hollow where it was not carried out; a line where the phase changed."""
    begin_s, end_s = shown[-1].at_s - SPAN_S, shown[-1].at_s
    visible = [decision for decision in decisions if begin_s <= decision.at_s <= end_s]
    turns = [
        now for before, now in itertools.pairwise([None, *visible]) if now and (not before or before.phase != now.phase)
    ]
    tide, lines = colour("tide"), [{"xAxis": decision.at_s * 1000} for decision in turns]
    marks = [
        {
            "value": [decision.at_s * 1000, 0],
            "name": decision.sentence,
            "itemStyle": {
                "color": tide if decision.acted else colour("paper"),
                "borderColor": tide,
                "borderWidth": 1.5,
            },
        }
        for decision in visible
    ]
    names = [
        {"value": [decision.at_s * 1000, top], "label": {"formatter": phase_word(decision.phase)}} for decision in turns
    ]
    return [
        _marks("decision", 0, marks, lines) | {"symbol": "triangle", "symbolSize": 9},
        # Words over the lines: where they would cover each other, ECharts leaves the later one out.
        _marks("phase", 0, names, [])
        | {"symbolSize": 0, "label": {"show": True, "position": "top"} | text("tide")}
        | {"labelLayout": {"hideOverlap": True}},
        _marks("phase below", 1, [], lines),
    ]


def _marks(name: str, panel: int, data: list[Options], lines: list[Options]) -> Options:
    rule = {"symbol": "none", "silent": True, "label": {"show": False}, "data": lines}
    rule["lineStyle"] = {"color": colour("tide"), "width": 1, "type": "dotted"}
    return {
        "type": "scatter",
        "name": name,
        "id": name,
        "xAxisIndex": panel,
        "yAxisIndex": panel,
        "data": data,
        "emphasis": {"disabled": True},
        "markLine": rule,
    }


def _phase_areas(shown: Sequence[Sample]) -> list[list[Options]]:
    """One shaded stretch for every time in which devices were held."""
    areas: list[list[Options]] = []
    phase, since_s = "idle", 0.0
    ends = [*((sample.phase, sample.at_s) for sample in shown), ("idle", shown[-1].at_s)] if shown else []
    for next_phase, at_s in ends:
        if next_phase == phase:
            continue
        if phase not in ("idle", "off", ""):
            begin = {"xAxis": since_s * 1000, "name": phase_word(phase), "itemStyle": {"color": colour("mist")}}
            areas.append([begin | {"label": {"position": "insideTop"} | text("quiet")}, {"xAxis": at_s * 1000}])
        phase, since_s = next_phase, at_s
    return areas
