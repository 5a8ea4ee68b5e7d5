"""What charts show besides lines, pure: decisions at their moment, and the phases as shaded stretches."""

import itertools
from collections.abc import Callable, Sequence

from tidegate.model.actions import Advise
from tidegate.model.decisions import Decision
from tidegate.model.view import DECISIONS_SHOWN, Sample
from tidegate.web.components.colours import colour
from tidegate.web.components.plot import ChartOptions, text
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.asked import told
from tidegate.web.values.words import held_word, is_held, phase_word

# A shaded stretch that is shorter gets no word.
WORD_S_MIN = 5.0


def decision_marks(
    decisions: Sequence[Decision], end_s: float, tops: Sequence[float], panel_of: Callable[[Decision], int]
) -> list[ChartOptions]:
    """A triangle per decision on its panel's time axis, hollow where it was not carried out.

    Where devices begin to be held, or are let go, a dotted line goes through all panels; ``tops`` has the upper end of
    each, and the word stands over the first.
    """
    visible = [decision for decision in decisions if _is_visible(decision, end_s)]
    turns = [(decision, word) for decision, word in _turns(decisions) if _is_visible(decision, end_s)]
    lines = [{"xAxis": decision.at_s * 1000} for decision, _ in turns]
    triangles = [
        _marks("decision", panel, [_triangle(one) for one in visible if panel_of(one) == panel], lines)
        for panel in range(len(tops))
    ]
    words = [_word(decision.at_s, tops[0], word) for decision, word in turns]
    return [*triangles, _words(0, words, "tide", "top")]


def _is_visible(decision: Decision, end_s: float) -> bool:
    return end_s - SPAN_S <= decision.at_s <= end_s


def _turns(decisions: Sequence[Decision]) -> list[tuple[Decision, str]]:
    """Decisions about advice with which devices begin to be held, or are let go."""
    turns: list[tuple[Decision, str]] = []
    # Where older decisions were left out of the view, how it was before the first one is not known.
    is_cut = len(decisions) >= DECISIONS_SHOWN
    for decision in decisions:
        if not isinstance(decision.action, Advise):
            continue
        word = held_word(decision.phase)
        if is_held(decision.phase) and not decision.acted:
            word = f"would be {word}"
        if word != (turns[-1][1] if turns else held_word("idle")):
            turns.append((decision, word))
    return turns[1:] if is_cut and turns and is_held(turns[0][0].phase) else turns


def _triangle(decision: Decision) -> ChartOptions:
    fill = colour("tide" if decision.acted else "paper")
    return {
        "value": [decision.at_s * 1000, 0],
        "name": decision.sentence,
        "itemStyle": {"color": fill, "borderColor": colour("tide"), "borderWidth": 1.5},
    }


def _marks(name: str, panel: int, data: list[ChartOptions], lines: list[ChartOptions]) -> ChartOptions:
    rule = {"symbol": "none", "silent": True, "label": {"show": False}, "data": lines}
    rule["lineStyle"] = {"color": colour("tide"), "width": 1, "type": "dotted"}
    return {
        "type": "scatter",
        "name": name,
        "id": f"{name}-{panel}",
        "xAxisIndex": panel,
        "yAxisIndex": panel,
        "symbol": "triangle",
        "symbolSize": 9,
        "data": data,
        "itemStyle": {"opacity": 1},
        "emphasis": {"disabled": True},
        "markLine": rule,
    }


def _words(panel: int, words: list[ChartOptions], hue: str, position: str) -> ChartOptions:
    """Words at places of a panel. Where they would cover each other, ECharts leaves the later one out."""
    label = {"show": True, "position": position} | text(hue)
    return _marks("phase", panel, words, []) | {"symbolSize": 0, "label": label, "labelLayout": {"hideOverlap": True}}


def _word(at_s: float, value: float, word: str) -> ChartOptions:
    return {"value": [at_s * 1000, value], "label": {"formatter": word}}


def phase_marks(shown: Sequence[Sample], panel: int, top: float, *, is_shadow: bool) -> ChartOptions:
    """A shaded stretch, with its word, for every time in which devices were held, or would have been."""
    stretches = _stretches(shown, is_shadow=is_shadow)
    areas = [
        [{"xAxis": begin_s * 1000, "itemStyle": {"color": colour("mist")}}, {"xAxis": end_s * 1000}]
        for begin_s, end_s, _ in stretches
    ]
    words = [
        _word((begin_s + end_s) / 2, top, word) for begin_s, end_s, word in stretches if end_s - begin_s >= WORD_S_MIN
    ]
    return _words(panel, words, "quiet", "bottom") | {"markArea": {"silent": True, "data": areas}, "z": 1}


def _stretches(shown: Sequence[Sample], *, is_shadow: bool) -> list[tuple[float, float, str]]:
    """Begin, end and word of each time in which the policy held, or would have held, devices."""
    found: list[tuple[float, float, str]] = []
    for before, after in itertools.pairwise(shown):
        if not is_held(before.phase):
            continue
        word = phase_word(before.phase)
        if is_shadow and not told(before).holds_anybody:
            word = f"would be {word}"
        if found and found[-1][1:] == (before.at_s, word):
            found[-1] = (found[-1][0], after.at_s, word)
        else:
            found.append((before.at_s, after.at_s, word))
    return found
