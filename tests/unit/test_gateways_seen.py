"""A gateway whose report is missing is no gateway without devices."""

import msgspec

from tidegate.controller.gateways_seen import KEPT_S, GatewaysSeen
from tidegate.model.observations import GatewayState


def gateway(name: str, publishers: int) -> GatewayState:
    return GatewayState(
        name=name,
        address="h:1",
        measured_at_s=0.0,
        connections=publishers,
        publishes=0,
        publishers=publishers,
        acknowledged=0,
        advised=0,
    )


def devices(found: tuple[GatewayState, ...]) -> int:
    return sum(one.publishers for one in found)


def test_a_silent_one_counts_with_its_last_value_for_a_while() -> None:
    seen = GatewaysSeen()
    assert devices(seen.update([gateway("a", 300), gateway("b", 200)], 0.0)[0]) == 500
    found, alarms = seen.update([gateway("a", 310)], 6.0)
    assert devices(found) == 510
    assert alarms == ["Gateway b has not reported for 6 s: its last values count for 30 s; see its log."]
    found, alarms = seen.update([gateway("a", 310)], KEPT_S)
    assert (devices(found), alarms) == (310, [])


def test_one_that_says_that_it_stops_is_gone_at_once() -> None:
    seen = GatewaysSeen()
    seen.update([gateway("a", 300), gateway("b", 200)], 0.0)
    left = msgspec.structs.replace(gateway("b", 0), left=True)
    found, alarms = seen.update([gateway("a", 300), left], 1.0)
    assert (devices(found), alarms) == (300, [])
    assert devices(seen.update([gateway("a", 300)], 7.0)[0]) == 300


def test_one_that_comes_back_is_what_it_says() -> None:
    seen = GatewaysSeen()
    seen.update([gateway("b", 200)], 0.0)
    seen.update([], 10.0)
    assert devices(seen.update([gateway("b", 7)], 20.0)[0]) == 7
