"""The tab about gateways, without a browser: rates from counters, sentence, numbers, rows and lines."""

from typing import Any

import msgspec
import pytest

from tidegate.model.observations import GatewayState, HeldClient, ProcessState
from tidegate.web.components.plot import height_px
from tidegate.web.components.refusals import refusals
from tidegate.web.components.stations import stations_html
from tidegate.web.tabs.gateways import charts, tables
from tidegate.web.tabs.gateways.sentence import sentence, tiles
from tidegate.web.values.gateway_history import GatewayHistory, Record


def gateway(at_s: float = 100.0, name: str = "g1", **fields: Any) -> GatewayState:
    values = {"connections": 800, "publishes": 5000, "acknowledged": 4000, "advised": 3}
    return GatewayState(name=name, address="h:1883", measured_at_s=at_s, **(values | fields))


def process(number: int, pid: int, publishes: int, **fields: Any) -> ProcessState:
    return ProcessState(
        number=number, pid=pid, connections=4, publishes=publishes, cpu_share=0.5, late_s=0.004, **fields
    )


def followed(*states: GatewayState) -> dict[str, Record]:
    history = GatewayHistory()
    for state in states:
        history.follow((state,))
    return history.records()


HELD = gateway(
    held=1900,
    held_clients={"its own rate": 380, "the topics a/#": 20},
    held_total=7000,
    admitting=12,
    overload=7,
    refused={"not MQTT": 3},
)


# -- the past


def test_rates_are_differences_of_counters_over_the_last_seconds() -> None:
    found = followed(gateway(10), gateway(12, publishes=5200, acknowledged=4100), gateway(20, publishes=6000))["g1"]
    assert [(one.in_per_s, one.acknowledged_per_s) for one in found.moments] == [
        (None, None),
        (100.0, 50.0),
        (100.0, 0.0),  # over the eight seconds since the second state; what is acknowledged never falls
    ]


def test_a_gateway_that_began_anew_is_followed_anew_and_its_past_stays() -> None:
    found = followed(gateway(10), gateway(11, publishes=5100), gateway(12, publishes=3), gateway(13, publishes=23))
    assert [one.in_per_s for one in found["g1"].moments] == [None, 100.0, None, 20.0]


def test_the_same_state_twice_is_no_standstill() -> None:
    found = followed(gateway(10), gateway(12, publishes=5200), gateway(12, publishes=5200))["g1"]
    assert len(found.moments) == 2
    assert found.now is not None
    assert found.now.in_per_s == 100.0


def test_two_minutes_are_kept_and_a_gateway_that_has_gone_for_as_long() -> None:
    history = GatewayHistory()
    history.follow((gateway(0.0, "gone"),))
    for second in range(300):
        history.follow((gateway(float(second)),))
        assert ("gone" in history.records()) == (second < 120)
    assert len(history.records()["g1"].moments) == 121


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([gateway(0, refused={"not MQTT": 2}), gateway(9, refused={"not MQTT": 5})], None),
        ([gateway(0, refused={"not MQTT": 2}), gateway(30, refused={"not MQTT": 5})], {"not MQTT": 6.0}),
        (
            [gateway(0), gateway(60, refused={"late": 4}), gateway(120, refused={"late": 6, "large": 1})],
            {"late": 2.0, "large": 1.0},
        ),
    ],
    ids=["too short to tell", "half a minute", "only the last minute counts"],
)
def test_refusals_are_counted_per_minute(states: list[GatewayState], expected: dict[str, float] | None) -> None:
    assert followed(*states)["g1"].refused_per_min == expected


def test_a_process_that_was_replaced_has_no_rate_yet() -> None:
    before = gateway(10, processes=(process(1, 41, 100), process(2, 42, 100)))
    after = gateway(12, processes=(process(1, 41, 150), process(2, 43, 7)))
    assert followed(before, after)["g1"].process_per_s == {1: 25.0}


# -- words and numbers


def test_the_sentence_says_who_is_held_and_why() -> None:
    records = followed(gateway(98), msgspec.structs.replace(HELD, publishes=6240))
    assert sentence((HELD,), records) == (
        "800 clients are connected and hand over 620 msg/s. 400 are held, because of: its own rate 380, "
        "the topics a/# 20. 12 more wait to be connected. g1 is late itself (overload 7 of 10)."
    )


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (gateway(), "800 clients are connected, how much is handed over is not known yet. Nobody is held."),
        (
            gateway(connections=1, held_clients={"its own rate": 1}, admitting=1),
            "1 client is connected, how much is handed over is not known yet. "
            "1 is held, because of: its own rate 1. 1 more waits to be connected.",
        ),
    ],
)
def test_the_sentence_of_a_gateway_that_was_just_seen(shown: GatewayState, words: str) -> None:
    assert sentence((shown,), followed(shown)) == words


def test_half_a_sum_does_not_pass_for_the_whole() -> None:
    both = (gateway(12, publishes=5200), gateway(12, "g2"))
    history = GatewayHistory()
    history.follow((gateway(10),))
    history.follow(both)
    assert {one.name: one.value for one in tiles(both, history.records())}["In"] == "not known yet"
    later = (gateway(14, publishes=5400), gateway(14, "g2", publishes=5060))
    history.follow(later)
    assert {one.name: one.value for one in tiles(later, history.records())}["In"] == "130 msg/s"


def test_tiles_say_what_their_numbers_are_made_of() -> None:
    records = followed(gateway(40), HELD)
    found = {one.name: one for one in tiles((HELD,), records)}
    assert (found["Held"].value, found["Held"].detail) == ("1,900 publishes", "of 400 clients")
    assert found["Connections"].detail == "at 1 gateway, 12 wait to be connected"
    assert (found["Refused"].value, found["Refused"].detail) == ("3 per minute", "3 so far")
    assert (found["Overload"].value, found["Overload"].alarms) == ("7 of 10", ("g1 is late",))
    assert tiles((gateway(),), {})[3].detail == "nobody waits"


# -- rows


def test_the_clients_that_have_waited_longest_stand_first_and_long_names_are_cut() -> None:
    short = HeldClient(client_id="pump-7", reason="its own rate", publishes=8, waiting_s=2.5)
    long = HeldClient(client_id="x" * 500, reason="the topics a/#", publishes=1, waiting_s=11.0)
    shown = (gateway(most_held=(short,)), gateway(name="g2", most_held=(long,)))
    first, second = tables.held_clients(shown).rows
    assert (len(first[0]), first[1:]) == (64, ("g2", "the topics a/#", "1", "11 s"))
    assert second == ("pump-7", "g1", "its own rate", "8", "2.5 s")


def test_reasons_versions_and_drops_are_summed_over_gateways() -> None:
    one = gateway(held_clients={"its own rate": 3, "credits": 5}, versions={"5": 7}, dropped={"too much waits": 2})
    two = gateway(name="g2", held_clients={"its own rate": 4}, versions={"5": 1, "3.1.1": 9, "3.1": 0})
    assert tables.held_reasons((one, two)).rows == (("its own rate", "7"), ("credits", "5"))
    assert tables.versions((one, two)).rows == (("3.1.1", "9"), ("5", "8"))
    assert tables.dropped((one, two)).rows == (("too much waits", "2"),)


def test_a_process_says_how_loaded_it_is() -> None:
    shown = gateway(12, processes=(process(1, 41, 150), process(2, 43, 7, draining=True)))
    records = followed(gateway(10, processes=(process(1, 41, 100),)), shown)
    assert tables.processes((shown,), records).rows == (
        ("g1", "1", "41", "4", "25", "50%", "4 ms", "● serving"),
        ("g1", "2", "43", "4", "?", "50%", "4 ms", "▲ draining"),
    )


def test_refusals_say_how_often_and_whether_they_go_on() -> None:
    shown = gateway(60, refused={"not MQTT": 3, "packet too large": 9})
    assert refusals((shown,), followed(gateway(0, refused={"packet too large": 9}), shown)).rows == (
        ("g1", "packet too large", "9", "0"),
        ("g1", "not MQTT", "3", "3"),
    )
    assert refusals((shown,), {}).rows[0][3] == "?"


def test_what_is_empty_says_what_that_means() -> None:
    quiet = (gateway(),)
    pages = [
        tables.held_clients(quiet),
        tables.held_reasons(quiet),
        refusals(quiet, {}),
        tables.dropped(quiet),
        tables.processes(quiet, {}),
        tables.versions(quiet),
    ]
    assert all(page.html().startswith("<p class='quiet'>") and page.empty != "Nothing to show." for page in pages)
    assert "has said yet" in tables.versions(quiet).empty
    assert tables.versions((gateway(connections=0),)).empty == "No client is connected."


def test_names_from_elsewhere_cannot_carry_markup() -> None:
    nasty = HeldClient(client_id="<script>x</script>", reason="<i>", publishes=1, waiting_s=1.0)
    shown = (gateway(name="<b>", most_held=(nasty,), refused={"<not>": 2}, held_clients={"<i>": 1}, overload=1),)
    parts = [
        tables.gateways(shown, {}).html(),
        tables.held_clients(shown).html(),
        tables.held_reasons(shown).html(),
        refusals(shown, {}).html(),
        stations_html(tiles(shown, {}), "tiles"),
    ]
    assert all(mark not in part for part in parts for mark in ("<script>", "<i>", "<b>", "<not>"))
    assert "&lt;not&gt;" in parts[3]


# -- the picture


def series(records: dict[str, Record]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for one in charts.gateways(records)["series"]:
        found.setdefault(one["xAxisIndex"], []).append(one["name"])
    return found


def test_one_gateway_has_what_comes_in_beside_what_is_acknowledged() -> None:
    records = followed(gateway(10), gateway(12, publishes=5200))
    assert series(records) == {0: ["in", "acknowledged"], 1: ["connections"], 2: ["held"]}


def test_of_several_gateways_the_busiest_four_have_a_line_in_every_panel() -> None:
    history = GatewayHistory()
    for second in (10.0, 12.0):
        history.follow(tuple(gateway(second, f"g{n}", publishes=int(second) * (n + 1)) for n in range(6)))
    names = ["g2", "g3", "g4", "g5"]
    assert series(history.records()) == dict.fromkeys(range(4), names)
    options = charts.gateways(history.records())
    assert options["title"][0]["text"] == "Messages per second, in, the 4 busiest of 6"
    hues = {one["name"]: one["lineStyle"]["color"] for one in options["series"]}
    assert all(one["lineStyle"]["color"] == hues[one["name"]] for one in options["series"])


def test_charts_of_one_and_of_several_gateways_are_of_one_height() -> None:
    assert height_px(*charts.ONE_PX) == height_px(*charts.SEVERAL_PX) == charts.GATEWAYS_PX


def test_before_anything_is_known_there_is_an_empty_chart() -> None:
    assert charts.gateways({})["series"] == []
    assert series(followed(gateway())) == {1: ["connections"], 2: ["held"]}
