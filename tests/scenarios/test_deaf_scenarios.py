"""Half of the devices do not listen: where the gateway enforces what it advises, nobody else pays for them."""

from pathlib import Path

import pytest

from tidegate.sim import policies
from tidegate.sim.files import load
from tidegate.sim.result import Result
from tidegate.sim.run import build_world, simulate
from tidegate.sim.scenario import Enforcement, Load, Monitoring, Scenario, Service, Strategy

ADAPTIVE = Strategy(policy="adaptive", overload="waiting > 4")
FLOOD_S = slice(25, 85)
CAPACITY_PER_S = 32.0


def fleet(enforcement: Enforcement, *, deaf_share: float = 1.0) -> Scenario:
    """Forty devices that would send 80 a second, and nodes for 32."""
    pattern = "0:2,10:2,15:20,100:20"
    return Scenario(
        name="deaf",
        seconds=90,
        classes=(
            Load(name="listening", pattern=pattern),
            Load(name="deaf", pattern=pattern, deaf_share=deaf_share),
        ),
        service=Service(rate_per_s=8, noise=0.1, nodes_at_start=4, nodes_max=4),
        monitoring=Monitoring(noise=0.05),
        gateway=enforcement,
    )


@pytest.fixture(scope="module")
def held() -> Result:
    return simulate(fleet(Enforcement(enforce=True)), ADAPTIVE, 1)


@pytest.fixture(scope="module")
def let() -> Result:
    return simulate(fleet(Enforcement()), ADAPTIVE, 1)


@pytest.fixture(scope="module")
def all_listen() -> Result:
    return simulate(fleet(Enforcement(), deaf_share=0.0), ADAPTIVE, 1)


def test_those_that_listen_notice_nothing_of_the_deaf(held: Result, let: Result, all_listen: Result) -> None:
    mine, unprotected, best = (one.classes["listening"] for one in (held, let, all_listen))
    assert mine.delay_mean_s <= 1.25 * best.delay_mean_s + 0.05
    assert mine.age_mean_s <= 1.25 * best.age_mean_s
    assert mine.age_mean_s <= 0.25 * unprotected.age_mean_s


def test_the_deaf_get_their_share_and_no_more(held: Result, let: Result) -> None:
    assert held.classes["deaf"].sent == pytest.approx(held.classes["listening"].sent, rel=0.1)
    assert let.classes["deaf"].sent > 2 * let.classes["listening"].sent


def test_what_waits_on_its_own_account_is_no_backlog_that_everybody_has_to_drain(held: Result) -> None:
    """Nodes stay busy: what the deaf have waiting is no reason to hold the others any more."""
    assert sum(held.series.arrivals[FLOOD_S]) / 60 >= 0.9 * CAPACITY_PER_S


def test_where_all_listen_nobody_is_ever_held_and_nothing_changes(all_listen: Result) -> None:
    enforced = fleet(Enforcement(enforce=True), deaf_share=0.0)
    world = build_world(enforced, ADAPTIVE, policies.build(enforced, ADAPTIVE), 1)
    for second in range(1, 91):
        world.run(second)
        assert world.gateway is not None
        assert world.gateway.held == 0
    assert simulate(enforced, ADAPTIVE, 1).row() == all_listen.row()


def test_who_is_held_for_too_long_is_closed_and_sends_again(held: Result) -> None:
    impatient = fleet(Enforcement(enforce=True, hold_s_max=2.0))
    world = build_world(impatient, ADAPTIVE, policies.build(impatient, ADAPTIVE), 1)
    world.run(90)
    assert world.gateway is not None
    assert world.gateway.closed > 0
    assert world.tallies["deaf"].sent == pytest.approx(held.classes["deaf"].sent, rel=0.05)


def test_devices_that_send_on_change_and_those_that_are_never_delayed_are_not_held_to_an_interval() -> None:
    pattern = ((0.0, 10),)
    scenario = Scenario(
        name="free",
        seconds=40,
        classes=(
            Load(name="alarm", pattern=pattern, never_delay=True, deaf_share=1.0),
            Load(name="meter", pattern=pattern, event_driven=True, deaf_share=1.0),
            Load(name="telemetry", pattern=pattern, deaf_share=1.0),
        ),
        service=Service(rate_per_s=45),
        gateway=Enforcement(enforce=True),
    )
    sent = {name: one.sent for name, one in simulate(scenario, ADAPTIVE, 1).classes.items()}
    assert sent["alarm"] == pytest.approx(800, abs=10)
    assert sent["meter"] == pytest.approx(800, rel=0.15)
    assert sent["telemetry"] < 600


def test_the_example_enforces() -> None:
    example = load(Path(__file__).parents[2] / "examples" / "scenarios" / "deaf.yaml")
    assert example.gateway.enforce
    assert [load.deaf_share for load in example.classes] == [0.0, 1.0]
