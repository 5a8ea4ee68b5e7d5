"""The verdict of the demo with deaf devices, from tables whose ages and shares are known by construction."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from tidegate.cli import demo
from tidegate.demo.acts import _Noted
from tidegate.demo.deafness import Hearing, checks, deaf_devices_share, hearing, rows_of
from tidegate.demo.script import Script
from tidegate.demo.story import Story
from tidegate.demo.verdict import Act, Figures, figures
from tidegate.model.errors import UserError
from tidegate.model.observations import GatewayState

BEGAN_S = 1_000.0
SCRIPT = Script(deaf=0.5, flood_devices=10)
LISTENS, DEAF = "device-000000", "device-000001"
Message = tuple[str, float, float, float, int]


def rows(*messages: Message) -> pa.Table:
    """(device, taken, arrived, committed, count) of each message, in seconds after the beginning."""
    device, taken, arrived, committed, count = zip(*messages, strict=True)
    return pa.table(
        {
            "device": pa.array(device),
            "taken_s": np.array(taken, float) + BEGAN_S,
            "arrived_s": np.array(arrived, float) + BEGAN_S,
            "committed_s": np.array(committed, float) + BEGAN_S,
            "count": pa.array(count, pa.int64()),
        }
    )


def act(**changes: Any) -> Act:
    values: dict[str, Any] = {"acknowledged": 5, "lost": 0, "duplicated": 0, "advised_s": None, "protected": False}
    values |= {"fleet": {"kept_schedule": True, "reconnects": 0}}
    return Act(
        name="act",
        began_s=BEGAN_S,
        flood_from_s=BEGAN_S + 2,
        flood_to_s=BEGAN_S + 12,
        ended_s=BEGAN_S + 20,
        interval_s_max=1.5,
        interval_s_end=0.0,
        **(values | changes),
    )


def test_ages_are_told_apart_by_who_listens() -> None:
    found = hearing(
        act(),
        rows(
            (LISTENS, 1, 1, 9, 1),
            (LISTENS, 3, 3, 4, 1),
            (LISTENS, 5, 6, 9, 3),
            (DEAF, 5, 8, 12, 1),
            (DEAF, 6, 9, 15, 1),
        ),
        SCRIPT,
    )
    assert found.listening_age_s_mean == pytest.approx((1 * 1 + 4 * 3) / 4)
    assert found.deaf_age_s_mean == pytest.approx((7 + 9) / 2)


def test_shares_count_what_arrived_in_the_flood_and_what_of_it_came_after_the_first_advice() -> None:
    calm, before = [(DEAF, 1.0, 1.0, 2.0, 1)] * 9, [(DEAF, 3.0, 3.0, 4.0, 1)] * 5
    after = [(LISTENS, 7.0, 7.0, 8.0, 2), (LISTENS, 8.0, 8.0, 9.0, 2), (DEAF, 6.0, 8.0, 9.0, 1)]
    late = [(DEAF, 11.0, 13.0, 14.0, 1)] * 4
    found = hearing(act(advised_s=BEGAN_S + 6), rows(*calm, *before, *after, *late), SCRIPT)
    assert (found.listening_messages, found.deaf_messages) == (2, 6)
    assert (found.deaf_share, found.deaf_share_ratio, found.deaf_share_ratio_advised) == (0.75, 1.5, 0.667)


@pytest.mark.parametrize(("share", "devices", "expected"), [(0.5, 800, 0.5), (0.25, 10, 0.2), (0.01, 800, 0.01)])
def test_the_fair_share_is_that_of_the_devices_that_are_there(share: float, devices: int, expected: float) -> None:
    assert deaf_devices_share(Script(deaf=share, flood_devices=devices)) == expected


@pytest.mark.parametrize(("reconnects", "held_too_long", "lost"), [(0, 0, 0), (2, 0, 2), (0, 3, 3), (4, 3, 4)], ids=str)
def test_who_was_closed_and_came_back_is_one_lost_connection(reconnects: int, held_too_long: int, lost: int) -> None:
    ended = act(fleet={"kept_schedule": True, "reconnects": reconnects}, held_too_long=held_too_long)
    assert hearing(ended, rows((DEAF, 3, 3, 4, 1)), SCRIPT).connections_lost == lost


def ends(**changes: Any) -> tuple[Figures, Figures]:
    one = figures(act(**changes), pa.table({name: np.array([]) for name in ("taken_s", "committed_s", "count")}))
    return one, one


BEFORE = hearing(act(), rows((LISTENS, 3, 3, 13, 1), (DEAF, 3, 3, 13, 1)), SCRIPT)
AFTER = hearing(act(advised_s=BEGAN_S + 2), rows((LISTENS, 3, 3, 5, 1), (DEAF, 3, 3, 19, 1)), SCRIPT)


@pytest.mark.parametrize(
    ("changes", "figures_changes", "fails"),
    [
        ({}, {}, []),
        ({"listening_age_s_mean": 2.6}, {}, ["deaf_delay_ratio"]),
        ({"listening_messages": 0, "listening_age_s_mean": 0.0}, {}, ["deaf_delay_ratio"]),
        ({"deaf_share_ratio": 1.2}, {}, ["deaf_share_ratio"]),
        ({"connections_lost": 1}, {}, ["keep_alives_lost"]),
        ({}, {"lost": 1}, ["ledger_exact"]),
        ({}, {"duplicated": 1}, ["ledger_exact"]),
        ({}, {"acknowledged": 0}, ["ledger_exact"]),
        ({}, {"fleet": {"kept_schedule": False}}, ["fleet_kept_schedule"]),
    ],
)
def test_each_check_can_fail(changes: dict[str, Any], figures_changes: dict[str, Any], fails: list[str]) -> None:
    found = checks(ends(**figures_changes), (BEFORE, msgspec.structs.replace(AFTER, **changes)))
    assert [one.name for one in found if not one.holds] == fails


def test_an_act_in_which_nothing_arrived_fails_and_is_no_fault() -> None:
    nothing = hearing(act(), rows((LISTENS, 0, 0, 1, 1)), SCRIPT)
    assert (nothing.listening_age_s_mean, nothing.deaf_share) == (0.0, 0.0)
    assert "deaf_delay_ratio" in [one.name for one in checks(ends(), (nothing, nothing)) if not one.holds]


def test_figures_are_plain_values_that_json_can_hold() -> None:
    assert msgspec.json.decode(msgspec.json.encode(AFTER), type=Hearing) == AFTER


def test_people_read_what_it_cost_whom() -> None:
    found = {what: (before, after) for what, before, after in rows_of(BEFORE, AFTER)}
    assert found["mean age, devices that listen"] == ("10.0 s", "2.0 s")
    assert found["mean age, deaf devices"] == ("10.0 s", "16.0 s")
    assert found["deaf devices' share of messages"] == ("50%", "50%")


# -- while it runs


def gateway(clients: int, closed: int) -> GatewayState:
    return GatewayState(
        name="g1",
        address="h:1",
        measured_at_s=1.0,
        connections=9,
        publishes=1,
        acknowledged=1,
        advised=0,
        held_clients={"its own rate": clients},
        refused={"held too long": closed, "not MQTT": 7},
    )


def test_the_most_clients_held_and_those_held_too_long_are_noted() -> None:
    noted = _Noted(BEGAN_S)
    assert noted.held_too_long == 0
    for clients, closed in ((0, 3), (400, 3), (20, 5)):
        noted.see_gateways((gateway(clients, closed),))
    assert (noted.held_clients_max, noted.held_too_long) == (400, 2)


@pytest.mark.parametrize(("clients", "publishes", "said"), [(0, 0, ""), (1200, 7000, "1,200 clients are held")])
def test_the_story_says_how_many_are_held_only_where_somebody_is(clients: int, publishes: int, said: str) -> None:
    console = Console(width=120, force_terminal=False)
    with console.capture() as captured:
        Story(console).held(clients, publishes)
    assert (said in captured.get()) if said else captured.get() == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--grow", "--deaf", "0.5"], "belong to the flood in two acts"),
        (["--deaf", "0.5", "--picture", "x.svg"], "leave it out with --deaf"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(arguments: list[str], sentence: str) -> None:
    app = typer.Typer()
    app.command()(demo.demo)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UserError)
    assert sentence in str(result.exception)
