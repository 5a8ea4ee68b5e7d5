"""Chart options are computed from samples without a browser: places, labels, marks."""

import itertools
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.actions import Advise, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision, Mode
from tidegate.model.intents import Reason
from tidegate.model.view import DECISIONS_SHOWN, ChainStates, Sample, View
from tidegate.web.components import plot
from tidegate.web.components.lines import recent
from tidegate.web.tabs.overview import charts
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.source import Source, shifted


def sample(at_s: float, age_s: float = 0.4, **fields: object) -> Sample:
    values = {"arrival_per_s": 200.0, "departure_per_s": 190.0, "waiting": 0, "devices": 100}
    values |= {"interval_s": 0.0, "capacity_per_s": None, "phase": "idle"} | fields
    return Sample(at_s=at_s, age_s=age_s, **values)


def decision(at_s: float, phase: str = "protect", *, acted: bool = True) -> Decision:
    reason = Reason(
        measurements={"head_age_s": 2.0}, rule="rate = capacity / devices", rejected="leave them", because="so"
    )
    action = Advise(advice=Advice(interval_s=1.5, lifetime_s=10.0))
    named = {"controller": "c", "plan": "1", "round": "1", "by": "send-rate", "sentence": "Held, because."}
    return Decision(at_s=at_s, phase=phase, acted=acted, action=action, reason=reason, **named)


def series(options: plot.ChartOptions, name: str) -> plot.ChartOptions:
    return next(entry for entry in options["series"] if entry["name"] == name)


RUN = tuple(sample(1000.0 + number / 2, capacity_per_s=500.0) for number in range(600))


def test_only_two_minutes_are_drawn_with_one_point_a_second() -> None:
    shown = recent(RUN)
    assert shown[-1] == RUN[-1]
    assert shown[0].at_s >= RUN[-1].at_s - SPAN_S
    assert len(shown) in (120, 121, 122)
    assert all(b.at_s > a.at_s for a, b in itertools.pairwise(shown))


def test_without_samples_there_is_an_empty_chart() -> None:
    assert recent(()) == ()
    assert charts.overview((), (), ())["series"] == []


def test_rates_have_the_capacity_as_a_dashed_line_and_values_at_their_ends() -> None:
    options = charts.overview(RUN, (), ())
    capacity = series(options, "capacity")
    assert capacity["lineStyle"]["type"] == "dashed"
    assert capacity["endLabel"]["formatter"] == "capacity 500"
    assert series(options, "arriving")["endLabel"]["formatter"] == "arriving 200"
    assert series(options, "age of data")["endLabel"]["formatter"] == "now 0.4 s"
    assert "legend" not in options
    assert options["animation"] is False


def test_demand_stands_in_grey_behind_what_arrives() -> None:
    options = charts.overview((sample(1.0), sample(2.0, demand_per_s=1600.0)), (), ())
    demand = series(options, "demand")
    assert demand["endLabel"]["formatter"] == "demand 1,600"
    assert demand["data"] == [[2000.0, 1600.0]]
    assert sum(entry["type"] == "line" and entry["xAxisIndex"] == 1 for entry in options["series"]) <= 4


def test_an_unknown_capacity_is_not_drawn() -> None:
    options = charts.overview((sample(1.0), sample(2.0)), (), ())
    assert [entry["name"] for entry in options["series"] if entry["type"] == "line"] == [
        "age of data",
        "arriving",
        "processed",
    ]


def test_both_panels_share_their_time() -> None:
    first, second = charts.overview(RUN, (), ())["xAxis"]
    assert (first["min"], first["max"]) == (second["min"], second["max"])
    assert first["max"] - first["min"] == SPAN_S * 1000


def test_decisions_stand_at_their_moment_and_hollow_where_nobody_acted() -> None:
    end_s = RUN[-1].at_s
    made = (
        decision(end_s - 500, "idle"),
        decision(end_s - 60),
        decision(end_s - 59),
        decision(end_s - 20, "idle", acted=False),
    )
    options = charts.overview(RUN, made, ())
    marks = series(options, "decision")["data"]
    assert [mark["value"][0] for mark in marks] == [(end_s - 60) * 1000, (end_s - 59) * 1000, (end_s - 20) * 1000]
    assert marks[0]["itemStyle"]["color"] != marks[2]["itemStyle"]["color"]
    assert marks[0]["name"] == "Held, because."
    assert [name["label"]["formatter"] for name in series(options, "phase")["data"]] == ["held", "not held"]


def test_where_older_decisions_were_left_out_no_beginning_is_claimed() -> None:
    """Devices have been held for longer than the list of decisions goes back."""
    end_s = RUN[-1].at_s
    made = tuple(decision(end_s - 60 + number, "drain") for number in range(DECISIONS_SHOWN))
    assert series(charts.overview(RUN, made, ()), "phase")["data"] == []


def test_only_advice_turns_and_only_where_the_word_changes() -> None:
    end_s = RUN[-1].at_s
    scaled = msgspec.structs.replace(decision(end_s - 41, "idle"), action=ScaleNodes(nodes_wanted=2))
    made = (decision(end_s - 50, "idle"), scaled, decision(end_s - 40, "drain"), decision(end_s - 30, "probe"))
    options = charts.overview(RUN, (*made, decision(end_s - 10, "hold", acted=False)), ())
    turns = series(options, "phase")["data"]
    assert [(turn["value"][0], turn["label"]["formatter"]) for turn in turns] == [
        ((end_s - 40) * 1000, "held"),
        ((end_s - 10) * 1000, "would be held"),
    ]
    assert len(series(options, "decision")["data"]) == 5


def test_a_past_run_begins_where_this_one_began() -> None:
    past = (sample(5.0, age_s=1.0), sample(10.0, age_s=9.0))
    options = charts.overview((sample(1000.0), sample(1008.0)), (), shifted(past, 1000.0))
    grey = series(options, "without protection")
    assert grey["data"] == [[1_000_000.0, 1.0], [1_005_000.0, 9.0]]
    assert "without" in grey["endLabel"]["formatter"]
    assert options["yAxis"][0]["max"] == 10.0


def test_a_past_run_is_not_drawn_beyond_now() -> None:
    past = (sample(5.0, age_s=1.0), sample(500.0, age_s=900.0))
    options = charts.overview((sample(1000.0), sample(1008.0)), (), shifted(past, 1000.0))
    assert len(series(options, "without protection")["data"]) == 1


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0.35, 0.4), (1.0, 1.0), (2.1, 3.0), (134.0, 200.0), (500.0, 600.0), (601.0, 800.0)]
)
def test_axes_end_at_round_numbers(value: float, ceiling: float) -> None:
    assert plot.nice_ceiling(value) == pytest.approx(ceiling)


@given(st.lists(st.tuples(st.floats(0, 1000), st.integers(1, 3)), min_size=1, max_size=4))
def test_end_labels_never_cover_each_other(labels: list[tuple[float, int]]) -> None:
    lines = [
        plot.ChartLine(name="x", label="\n".join("x" * rows), hue="ink", points=((0.0, value),))
        for value, rows in labels
    ]
    shifts = plot.label_shifts_px(lines, 1000.0, 190)
    placed = sorted(
        (190 * (1 - value / 1000.0) + shift, rows * plot.LABEL_PX / 2)
        for (value, rows), shift in zip(labels, shifts, strict=True)
    )
    assert all(b - a >= half_a + half_b - 1e-6 for (a, half_a), (b, half_b) in itertools.pairwise(placed))
    assert placed[-1][0] + placed[-1][1] <= 190 + plot.LABEL_PX / 2 + 1e-6


def test_a_stretch_of_time_is_remembered_as_the_past_run() -> None:
    view = View(name="x", controller="c", leader=None, mode=Mode(), samples=RUN, decisions=(), chain=ChainStates())

    async def set_mode(_: Mapping[str, object]) -> Mode:
        return Mode()

    source = Source(lambda: view, set_mode)
    assert source.remember(0.0, 10.0, 2000.0) == 0
    assert source.past() == ()
    assert source.remember(1010.0, 1020.0, 2000.0) == 21
    assert (source.past()[0].at_s, source.past()[-1].at_s) == (2000.0, 2010.0)


def test_a_given_past_run_begins_where_the_view_began() -> None:
    view = View(name="x", controller="c", leader=None, mode=Mode(), samples=RUN, decisions=(), chain=ChainStates())

    async def set_mode(_: Mapping[str, object]) -> Mode:
        return Mode()

    source = Source(lambda: view, set_mode, lambda: (sample(5.0), sample(6.0)))
    assert source.past() == (), "nothing was seen yet"
    source.view()
    assert [moved.at_s for moved in source.past()] == [1000.0, 1001.0]
