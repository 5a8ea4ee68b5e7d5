"""What the dashboard says: stations, rows, words."""

import msgspec
import pytest

from tidegate.model.decisions import Action, Decision, Mode, Reason
from tidegate.model.observations import BrokerState, GatewayState, NodeState
from tidegate.model.view import Chain, Sample, View
from tidegate.web import chain, tables
from tidegate.web.decision_list import decision_html
from tidegate.web.words import GatewayRates, mode_word, number, view_age_s

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
    chain=Chain(
        brokers=(
            BrokerState(name="b1", address="h:1", healthy=True, connections=7),
            BrokerState(name="b2", address="h:2", healthy=False, problem="does not answer"),
        ),
        nodes=(NodeState(name="n1", alive=False, slices=(0, 1), rows=40),),
    ),
)


def gateway(publishes: int, at_s: float, name: str = "g1") -> GatewayState:
    return GatewayState(
        name=name,
        address="h:1883",
        measured_at_s=at_s,
        connections=800,
        publishes=publishes,
        acknowledged=publishes,
        advised=3,
        refused={"topic <not> allowed": 2},
    )


def test_every_station_names_its_numbers_and_alarms() -> None:
    devices, gate, brokers, spark, stored = chain.stations(VIEW, {})
    assert (devices.value, devices.detail) == ("800 connected", "asked to send every 1.6 s")
    assert gate.value == "none runs"
    assert (brokers.value, brokers.detail) == ("1 of 2 healthy", "backlog 24,000")
    assert brokers.alarms == ("b2: does not answer",)
    assert (spark.value, spark.alarms) == ("1,100 msg/s", ("n1: does not answer",))
    assert (stored.value, stored.alarms) == ("12 s old", ("older than 2 s",))


def test_before_the_first_measurement_nothing_is_claimed() -> None:
    empty = msgspec.structs.replace(VIEW, samples=(), chain=Chain())
    assert all(" 0" not in f" {station.value}" for station in chain.stations(empty, {}))
    assert "not measured" in chain.html(chain.stations(empty, {}))
    assert "Nothing is measured yet." in tables.raw_values(empty, 100.0).html()


def test_an_unknown_value_is_no_zero() -> None:
    rows = dict(tables.raw_values(VIEW, 101.0).rows)
    assert rows["Capacity"] == "not known yet"
    assert rows["Age of these values"] == "1 s"
    assert tables.brokers(VIEW).rows[1][3] == "?"


def test_names_from_elsewhere_cannot_carry_markup() -> None:
    hostile = msgspec.structs.replace(VIEW, chain=Chain(gateways=(gateway(1, 1.0, name="<script>x</script>"),)))
    pages = [tables.gateways(hostile, {}).html(), tables.refusals(hostile).html()]
    assert all("<script>" not in page and "<not>" not in page for page in pages)
    assert "&lt;not&gt;" in pages[1]


def test_a_decision_shows_its_sentence_and_behind_it_the_whole_reason() -> None:
    reason = Reason(readings={"head_age_s": 2.34}, rule="R / N", rejected="<b>wait</b>")
    action = Action(kind="advise", arguments={"interval_s": 1.6}, reason=reason)
    made = Decision(at_s=1.0, controller="c1", phase="protect", sentence="Held & so.", acted=False, action=action)
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


def test_a_gateways_rate_is_the_difference_of_its_counter() -> None:
    rates = GatewayRates()
    assert rates.follow((gateway(100, 10.0),)) == {}
    assert rates.follow((gateway(300, 12.0),)) == {"g1": 100.0}
    assert rates.follow((gateway(300, 12.0),)) == {"g1": 100.0}, "the same measurement twice is no standstill"
    assert rates.follow((gateway(5, 13.0),)) == {}, "it began anew"
    assert rates.follow((gateway(25, 14.0),)) == {"g1": 20.0}
    assert rates.follow(()) == {}


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
