"""The chart of the first screen, pure: the age of data, and the rates that explain it."""

from collections.abc import Sequence

from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, seconds
from tidegate.web.components.lines import RATES_TITLE, end_s, line, rates, recent, tops
from tidegate.web.components.marks import decision_marks
from tidegate.web.components.plot import ChartLine, ChartOptions, ChartPanel, chart, height_px
from tidegate.web.values.ages import SPAN_S

AGE_AXIS_S_MIN = 2.0
_AGE_PX, _RATES_PX = 190, 130
OVERVIEW_PX = height_px(_AGE_PX, _RATES_PX)


def overview(samples: Sequence[Sample], decisions: Sequence[Decision], past: Sequence[Sample]) -> ChartOptions:
    """The age of data above, what arrives and what is processed below; decisions stand at their moment."""
    shown = recent(samples)
    grey = _past_line(past, shown)
    age = line("age of data", "ink", shown, lambda sample: sample.age_s, lambda value: f"now {seconds(value)}")
    panels = (
        ChartPanel(title="Age of data, s", height_px=_AGE_PX, lines=(*grey, *age), axis_min=AGE_AXIS_S_MIN),
        ChartPanel(title=RATES_TITLE, height_px=_RATES_PX, lines=rates(shown)),
    )
    options = chart(panels, end_s(shown))
    if shown:
        options["series"] += decision_marks(decisions, end_s(shown), tops(options), lambda _: 0)
    return options


def _past_line(past: Sequence[Sample], shown: Sequence[Sample]) -> tuple[ChartLine, ...]:
    if not shown:
        return ()
    last_s = shown[-1].at_s
    visible = recent([sample for sample in past if last_s - SPAN_S <= sample.at_s <= last_s])
    return line(
        "without protection", "past", visible, lambda s: s.age_s, lambda v: f"without\nprotection\n{seconds(v)}"
    )
