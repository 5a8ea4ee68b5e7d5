"""The tab about send rates, without a browser: what is asked of whom, or would be, as sentence, rows and lines."""

from typing import Any

import msgspec
import pytest

from tidegate.model.actions import Action, Advise, Route, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision, Mode
from tidegate.model.intents import Reason
from tidegate.model.observations import ClassState, GatewayState
from tidegate.model.routes import Routes
from tidegate.model.view import ChainStates, Sample, View
from tidegate.web.components.plot import ChartOptions
from tidegate.web.tabs.send_rates import charts, tables
from tidegate.web.tabs.send_rates.sentence import sentence
from tidegate.web.values.asked import asked_of, untold
from tidegate.web.values.publish_rates import PublishRates

SHADOW = Mode(send_rate="shadow")


def sample(at_s: float = 100.0, **fields: Any) -> Sample:
    values = {"age_s": 0.4, "arrival_per_s": 480.0, "departure_per_s": 490.0, "waiting": 0, "devices": 800}
    values |= {"interval_s": 0.0, "capacity_per_s": 500.0, "phase": "idle", "demand_per_s": 1600.0, "nodes_working": 2}
    return Sample(at_s=at_s, **(values | fields))


def decision(at_s: float, interval_s: float, *, acted: bool, **more: Any) -> Decision:
    return decided(at_s, Advise(advice=Advice(interval_s=interval_s, lifetime_s=10.0, **more)), acted=acted)


def decided(at_s: float, action: Action, *, acted: bool = True) -> Decision:
    reason = Reason(measurements={}, rule="capacity / devices", rejected="leave them", because="so")
    named = {
        "controller": "c",
        "plan": "1",
        "round": "1",
        "by": "send-rate",
        "phase": "protect",
        "sentence": "Because.",
    }
    return Decision(at_s=at_s, acted=acted, action=action, reason=reason, **named)


def view(*samples: Sample, mode: Mode | None = None, decisions: tuple[Decision, ...] = (), **classes: int) -> View:
    gateway = GatewayState(
        name="g1",
        address="h:1",
        measured_at_s=100.0,
        connections=800,
        publishes=1,
        acknowledged=1,
        advised=0,
        held=3,
        classes={name: ClassState(devices=devices, publishes=1) for name, devices in classes.items()},
    )
    return View(
        name="x",
        controller="c",
        leader="c",
        mode=mode or Mode(),
        samples=samples,
        decisions=decisions,
        chain=ChainStates(gateways=(gateway,)),
    )


HELD = sample(interval_s=1.6, phase="protect")
CLASSES = sample(interval_s=1.6, phase="drain", classes={"alarm": 0.0, "command": 0.8}, nodes_wanted=4)
UNTOLD = (decision(80.0, 1.2, acted=True), decision(90.0, 1.8, acted=False), decision(95.0, 1.6, acted=False))


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (view(), "Nothing is measured yet."),
        (
            view(HELD),
            "Devices want to send 1,600 msg/s, Spark can take 500. 800 devices are asked to send every 1.6 s.",
        ),
        (
            view(CLASSES, alarm=10, command=90, telemetry=700),
            "Devices want to send 1,600 msg/s, Spark can take 500. Devices are asked to send less: "
            "command every 0.8 s, telemetry every 1.6 s. 2 processing nodes work, 4 are wanted.",
        ),
        (
            view(sample(demand_per_s=None, capacity_per_s=None)),
            "480 msg/s arrive, what Spark can take is not known yet. Nobody is held.",
        ),
        (
            view(sample(nodes_working=2, nodes_wanted=1), mode=Mode(send_rate="off")),
            "Devices want to send 1,600 msg/s, Spark can take 500. Nobody is held: protection is off. "
            "2 processing nodes work, 1 is wanted.",
        ),
        (
            view(sample(), mode=Mode(send_rate="shadow", frozen=True), decisions=UNTOLD),
            "Devices want to send 1,600 msg/s, Spark can take 500. Nobody is held: all acting is frozen.",
        ),
        (
            view(sample(phase="protect", nodes_wanted=4), mode=SHADOW, decisions=UNTOLD),
            "Devices want to send 1,600 msg/s, Spark can take 500. 800 devices would be asked to send every 1.6 s, but "
            "nobody is told (shadow). 2 processing nodes work, 4 would be wanted.",
        ),
        (
            view(sample(), mode=SHADOW),
            "Devices want to send 1,600 msg/s, Spark can take 500. Nobody would be held (shadow: nobody is told).",
        ),
    ],
)
def test_the_state_is_said_in_sentences(shown: View, words: str) -> None:
    assert sentence(shown) == words


def test_in_shadow_mode_only_decisions_since_the_last_telling_count() -> None:
    assert [(at_s, asked.interval_s) for at_s, asked in untold(UNTOLD)] == [(90.0, 1.8), (95.0, 1.6)]
    assert untold((*UNTOLD, decision(99.0, 0.0, acted=True))) == []
    scaled = decided(96.0, ScaleNodes(nodes_wanted=9), acted=False)
    assert asked_of(view(sample(), mode=SHADOW, decisions=(*UNTOLD, scaled))).interval_s == 1.6


def test_wider_dead_bands_come_from_the_advice_in_force() -> None:
    told = decision(99.0, 1.6, acted=True, dead_bands={"siren": 2.5})
    assert asked_of(view(HELD, decisions=(told,))).of("siren") == "on changes 2.5 times as large"
    assert asked_of(view(HELD, decisions=(told,))).of("telemetry") == "every 1.6 s"
    frozen = view(HELD, mode=Mode(frozen=True), decisions=(told,))
    assert asked_of(frozen).of("siren") == "every 1.6 s", "frozen advice runs out and nobody says so"


def test_every_class_has_a_row_and_so_have_devices_without_one() -> None:
    shown = view(CLASSES, alarm=10, command=90, telemetry=650)
    table = tables.classes(shown, PublishRates(classes={"alarm": 2.0, "command": 110.0}))
    assert table.columns == ("Class", "Devices", "msg/s", "Advised interval")
    assert table.rows == (
        ("alarm", "10", "2", "default"),
        ("command", "90", "110", "every 0.8 s"),
        ("telemetry", "650", "?", "every 1.6 s"),
        ("not known yet", "50", "?", "every 1.6 s"),
    )
    assert tables.classes(view(HELD), PublishRates()).rows == (("all", "800", "480", "every 1.6 s"),)


def test_in_shadow_mode_rows_say_what_would_be() -> None:
    shown = view(sample(phase="drain", nodes_wanted=4), mode=SHADOW, decisions=UNTOLD)
    table = tables.classes(shown, PublishRates())
    assert table.columns[3] == "Would be advised"
    assert table.rows[0][3] == "every 1.6 s"
    assert dict(tables.control(shown).rows) == {
        "Phase": "Would be draining: less than Spark takes, so that the backlog shrinks.",
        "Mode": "Shadow: decisions are made and written down, nobody is told.",
    }
    values = dict(tables.values(shown).rows)
    assert values["Processing nodes"] == "2 working, 4 would be wanted"
    assert values["Held in gateways"] == "3 msg"


@pytest.mark.parametrize(
    ("phase", "begins"),
    [
        ("idle", "Not held: "),
        ("protect", "Held: "),
        ("recover", "Recovering: "),
        ("no evidence", "No evidence: "),
        ("hold", "Held: "),
        ("drain", "Draining: "),
        ("probe", "Probing: "),
        ("off", "Off: "),
        ("overload", "Overloaded: "),
    ],
)
def test_every_phase_says_what_it_means(phase: str, begins: str) -> None:
    assert dict(tables.control(view(sample(phase=phase))).rows)["Phase"].startswith(begins)


def test_a_phase_that_nobody_described_is_still_named() -> None:
    assert dict(tables.control(view(sample(phase="settling"))).rows)["Phase"] == "Settling"


def lines(options: ChartOptions, panel: int) -> dict[str, ChartOptions]:
    return {
        entry["name"]: entry for entry in options["series"] if entry["type"] == "line" and entry["xAxisIndex"] == panel
    }


def label(entry: ChartOptions) -> str:
    found: str = entry["endLabel"]["formatter"]
    return found.removeprefix("{square|■} ")


RATES, INTERVALS, NODES = range(3)


def test_without_samples_there_is_an_empty_chart() -> None:
    assert charts.send_rates(view())["series"] == []


def test_rates_have_their_capacity_and_demand() -> None:
    options = charts.send_rates(view(sample(99.0), sample(100.0)))
    drawn = lines(options, RATES)
    assert list(drawn) == ["demand", "capacity", "arriving", "processed"]
    assert drawn["capacity"]["lineStyle"]["type"] == "dashed"
    assert label(drawn["capacity"]) == "capacity 500"


def test_one_interval_for_all_is_one_line() -> None:
    same = msgspec.structs.replace(HELD, classes={"alarm": 1.6})
    (drawn,) = lines(charts.send_rates(view(same)), INTERVALS).values()
    assert label(drawn) == "every 1.6 s"


def test_classes_that_differ_have_lines_of_their_own_and_equal_ones_share() -> None:
    calm = sample(99.0, classes={"alarm": 0.0, "command": 0.0, "siren": 0.0})
    held = msgspec.structs.replace(CLASSES, classes={**CLASSES.classes, "siren": 0.0})
    drawn = lines(charts.send_rates(view(calm, held, alarm=1, command=1, siren=1, telemetry=1)), INTERVALS)
    assert {name: label(entry) for name, entry in drawn.items()} == {
        "alarm, siren": "alarm, siren\ndefault",
        "command": "command 0.8 s",
        "telemetry": "telemetry 1.6 s",
    }
    assert drawn["command"]["data"] == [[99_000.0, 0.0], [100_000.0, 0.8]]
    assert len({entry["lineStyle"]["color"] for entry in drawn.values()}) == 3


def test_of_many_classes_the_four_that_are_held_most_are_drawn() -> None:
    many = {f"class-{number}": float(number) for number in range(9)}
    drawn = lines(charts.send_rates(view(msgspec.structs.replace(HELD, classes=many))), INTERVALS)
    assert list(drawn) == ["class-5", "class-6", "class-7", "class-8"]


def test_in_shadow_mode_the_interval_that_would_be_is_dashed() -> None:
    shown = view(sample(99.0), sample(100.0, phase="protect"), mode=SHADOW, decisions=UNTOLD)
    options = charts.send_rates(shown)
    (drawn,) = lines(options, INTERVALS).values()
    assert drawn["lineStyle"]["type"] == "dashed"
    assert drawn["data"] == [[90_000.0, 1.8], [95_000.0, 1.6], [100_000.0, 1.6]]
    assert label(drawn) == "would be\nevery 1.6 s"
    assert "nobody is told" in options["title"][INTERVALS]["text"]


def test_what_still_holds_devices_stays_visible_after_a_switch_to_shadow() -> None:
    shown = view(msgspec.structs.replace(HELD, at_s=85.0), sample(100.0), mode=SHADOW, decisions=UNTOLD)
    drawn = [entry for entry in charts.send_rates(shown)["series"] if entry["type"] == "line"]
    styles = {entry["id"]: entry["lineStyle"]["type"] for entry in drawn if entry["xAxisIndex"] == INTERVALS}
    assert list(styles.values()) == ["dashed", "solid"]


def test_of_decisions_before_the_chart_begins_only_the_last_one_counts() -> None:
    made = (decision(10.0, 5.0, acted=False), decision(20.0, 1.8, acted=False), decision(150.0, 1.6, acted=False))
    (drawn,) = lines(charts.send_rates(view(sample(160.0), mode=SHADOW, decisions=made)), INTERVALS).values()
    assert drawn["data"] == [[40_000.0, 1.8], [150_000.0, 1.6], [160_000.0, 1.6]]


@pytest.mark.parametrize("mode", [Mode(), SHADOW])
def test_no_two_series_share_an_id(mode: Mode) -> None:
    run = (CLASSES, sample(101.0, phase="drain"))
    made = (*UNTOLD, decision(96.0, 1.6, acted=False, classes={"alarm": 0.2}))
    ids = [entry["id"] for entry in charts.send_rates(view(*run, mode=mode, decisions=made))["series"]]
    assert len(ids) == len(set(ids))


def test_nodes_are_steps_on_an_axis_of_whole_numbers() -> None:
    options = charts.send_rates(view(sample(99.0), sample(100.0, nodes_working=3, nodes_wanted=5)))
    drawn = lines(options, NODES)
    assert [label(entry) for entry in drawn.values()] == ["working 3", "wanted 5"]
    assert all(entry["step"] == "end" for entry in drawn.values())
    assert options["yAxis"][NODES]["max"] == 6.0


def test_decisions_stand_under_what_they_change() -> None:
    made = (
        decision(90.0, 1.6, acted=True),
        decided(91.0, ScaleNodes(nodes_wanted=2)),
        decided(92.0, Route(routes=Routes(brokers=()))),
    )
    options = charts.send_rates(view(sample(), decisions=made))
    marks = {entry["xAxisIndex"]: entry["data"] for entry in options["series"] if entry["name"] == "decision"}
    assert {panel: [mark["value"][0] for mark in data] for panel, data in marks.items()} == {
        RATES: [90_000.0],
        INTERVALS: [],
        NODES: [91_000.0],
    }


def shading(options: ChartOptions) -> tuple[list[tuple[float, float]], list[str]]:
    found = next(entry for entry in options["series"] if "markArea" in entry)
    areas = [(begin["xAxis"], end["xAxis"]) for begin, end in found["markArea"]["data"]]
    return areas, [word["label"]["formatter"] for word in found["data"]]


def test_phases_are_shaded_with_their_word_where_it_fits() -> None:
    phases = {50.0: "idle", 60.0: "protect", 70.0: "protect", 80.0: "recover", 82.0: "no evidence", 90.0: "off"}
    run = [sample(at_s, phase=phase, interval_s=1.0) for at_s, phase in phases.items()]
    assert shading(charts.send_rates(view(*run))) == ([(60_000.0, 80_000.0), (80_000.0, 82_000.0)], ["held"])


def test_shading_in_shadow_mode_says_would_be_from_where_nobody_was_held() -> None:
    run = (HELD, sample(106.0, phase="protect"), sample(112.0, phase="protect"))
    areas, words = shading(charts.send_rates(view(*run, mode=SHADOW)))
    assert areas == [(100_000.0, 106_000.0), (106_000.0, 112_000.0)]
    assert words == ["held", "would be held"]
