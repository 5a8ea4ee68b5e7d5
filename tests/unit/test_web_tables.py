"""What the dashboard says: stations, rows, words."""

import msgspec
import pytest

from tidegate.model.actions import Advise
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision, Mode
from tidegate.model.intents import Reason
from tidegate.model.observations import BrokerState, ClassState, GatewayState, NodeState
from tidegate.model.view import ChainStates, Sample, View
from tidegate.web.components.decision_list import decision_html
from tidegate.web.components.stations import stations_html
from tidegate.web.tabs.brokers.tables import brokers
from tidegate.web.tabs.overview.chain import stations
from tidegate.web.tabs.overview.tables import raw_values
from tidegate.web.values.ages import view_age_s
from tidegate.web.values.publish_rates import PublishRates, RateWindow
from tidegate.web.values.words import mode_word, number

SAMPLE = Sample(
    at_s=100.0,
    age_s=12.0,
    arrival_per_s=1900.0,
    departure_per_s=1100.0,
    waiting=24_000,
    devices=800,
    interval_s=1.6,
    capacity_per_s=None,
    phase="protect",
)
VIEW = View(
    name="pump-house",
    controller="c1",
    leader="c1",
    mode=Mode(),
    samples=(SAMPLE,),
    decisions=(),
    chain=ChainStates(
        brokers=(
            BrokerState(name="b1", address="h:1", healthy=True, connections=7),
            BrokerState(name="b2", address="h:2", healthy=False, problem="does not answer"),
        ),
        nodes=(NodeState(name="n1", alive=False, slices=(0, 1), rows=40),),
    ),
)


NO_RATES = PublishRates()


def gateway(publishes: int, at_s: float, name: str = "g1", **classes: int) -> GatewayState:
    return GatewayState(
        name=name,
        address="h:1883",
        measured_at_s=at_s,
        connections=800,
        publishes=publishes,
        acknowledged=publishes,
        advised=3,
        refused={"topic <not> allowed": 2},
        classes={kind: ClassState(devices=5, publishes=count) for kind, count in classes.items()},
    )


def test_every_station_names_its_numbers_and_alarms() -> None:
    devices, gate, broker, spark, stored = stations(VIEW, NO_RATES)
    assert (devices.value, devices.detail) == ("800 connected", "asked to send every 1.6 s")
    assert gate.value == "none runs"
    assert (broker.value, broker.detail) == ("1 of 2 healthy", "backlog 24,000")
    assert broker.alarms == ("b2: does not answer",)
    assert (spark.value, spark.alarms) == ("1,100 msg/s", ("n1: does not answer",))
    assert (stored.value, stored.alarms) == ("12 s old", ("older than 2 s",))


def test_before_the_first_measurement_nothing_is_claimed() -> None:
    empty = msgspec.structs.replace(VIEW, samples=(), chain=ChainStates())
    assert all(" 0" not in f" {station.value}" for station in stations(empty, NO_RATES))
    assert "not measured" in stations_html(stations(empty, NO_RATES))
    assert "Nothing is measured yet." in raw_values(empty, 100.0).html()


def test_an_unknown_value_is_no_zero() -> None:
    rows = dict(raw_values(VIEW, 101.0).rows)
    assert rows["Capacity"] == "not known yet"
    assert rows["Age of these values"] == "1 s"
    assert brokers(VIEW).rows[1][3] == "?"


def test_a_decision_shows_its_sentence_and_behind_it_the_whole_reason() -> None:
    reason = Reason(measurements={"head_age_s": 2.34}, rule="R / N", rejected="<b>wait</b>", because="so")
    made = Decision(
        at_s=1.0,
        controller="c1",
        plan="1",
        round="1",
        by="send-rate",
        phase="protect",
        sentence="Held & so.",
        acted=False,
        action=Advise(advice=Advice(interval_s=1.6, lifetime_s=10.0)),
        reason=reason,
    )
    page = decision_html(made)
    for part in (
        "held, not acted",
        "Held &amp; so.",
        "head_age_s = 2.34",
        "R / N",
        "&lt;b&gt;wait",
        "interval_s = 1.6",
    ):
        assert part in page


def test_a_station_says_how_many_are_held_and_how_many_nodes_are_wanted() -> None:
    now = msgspec.structs.replace(SAMPLE, classes={"alarm": 0.0}, nodes_working=1, nodes_wanted=3)
    held = msgspec.structs.replace(gateway(1, 1.0), held=7)
    view = msgspec.structs.replace(VIEW, samples=(now,), chain=msgspec.structs.replace(VIEW.chain, gateways=(held,)))
    devices, gate, _, spark, _ = stations(view, NO_RATES)
    assert devices.detail == "asked to send less, by class"
    shadow = stations(msgspec.structs.replace(view, mode=Mode(send_rate="shadow")), NO_RATES)
    assert shadow[0] == devices, "advice in force counts until its lease runs out"
    assert gate.detail == "800 connections, 7 held, 2 refused so far"
    assert spark.detail == "0 of 1 nodes alive, 3 wanted"


def test_a_node_that_has_gone_is_named_and_its_rows_are_not_summed() -> None:
    nodes = (
        NodeState(name="n1", alive=True, slices=(0,), rows=40),
        NodeState(name="n2", alive=False, slices=(), rows=9),
    )
    now = msgspec.structs.replace(SAMPLE, nodes_working=1, nodes_wanted=2)
    view = msgspec.structs.replace(VIEW, samples=(now,), chain=msgspec.structs.replace(VIEW.chain, nodes=nodes))
    *_, spark, stored = stations(view, NO_RATES)
    assert (spark.detail, spark.alarms) == ("1 of 2 nodes alive, 2 wanted", ("n2: does not answer",))
    assert stored.detail == "40 rows committed"


def test_a_gateways_rate_is_the_difference_of_its_counter() -> None:
    window = RateWindow()
    assert window.follow((gateway(100, 10.0),)).gateways == {}
    assert window.follow((gateway(300, 12.0),)).gateways == {"g1": 100.0}
    assert window.follow((gateway(300, 12.0),)).gateways == {"g1": 100.0}, "the same measurement twice is no standstill"
    assert window.follow((gateway(500, 18.0),)).gateways == {"g1": pytest.approx(200 / 6)}, "old counters are left out"
    assert window.follow((gateway(5, 19.0),)).gateways == {}, "it began anew"
    assert window.follow((gateway(25, 20.0),)).gateways == {"g1": 20.0}
    assert window.follow(()).gateways == {}


def test_a_classs_rate_is_that_of_all_gateways_or_not_known() -> None:
    window = RateWindow()
    window.follow((gateway(100, 10.0, alarm=10, telemetry=90),))
    one = window.follow((gateway(200, 12.0, alarm=14, telemetry=180, command=6),))
    assert one.classes == {"alarm": 2.0, "telemetry": 45.0, "command": 3.0}
    both = (gateway(300, 14.0, alarm=18, telemetry=270, command=12), gateway(7, 14.0, "g2", telemetry=7))
    assert "telemetry" not in window.follow(both).classes, "the second gateway's share is not known yet"
    both = (gateway(400, 16.0, alarm=22, telemetry=360, command=18), gateway(17, 16.0, "g2", telemetry=17))
    assert window.follow(both).classes["telemetry"] == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "?"), (0, "0"), (0.123, "0.12"), (7, "7"), (9.87, "9.9"), (1234.5, "1,234")]
)
def test_numbers_are_written_for_people(value: float | None, text: str) -> None:
    assert number(value) == text


def test_frozen_says_more_than_the_mode_below_it() -> None:
    assert mode_word(Mode(send_rate="acting", frozen=True)) == "frozen"
    assert mode_word(Mode(send_rate="shadow")) == "shadow"


def test_the_age_of_a_view_is_never_negative() -> None:
    assert view_age_s(VIEW, 99.0) == 0.0
    assert view_age_s(VIEW, 112.0) == 12.0
