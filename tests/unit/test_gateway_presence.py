"""Devices that come by HTTP are counted, each once, for as long as they come, and never more than fit."""

from tidegate.gateway.presence import Presence
from tidegate.gateway.shared.tally import ClassTally


def test_a_device_is_counted_once_and_until_it_stays_away() -> None:
    presence, telemetry = Presence(kept_s=600.0), ClassTally("telemetry")
    for at_s in (0.0, 300.0, 600.0):
        presence.came("slow", telemetry, at_s)
        presence.look(at_s)
        assert telemetry.devices == 1
    presence.came("other", telemetry, 700.0)
    assert telemetry.devices == 2
    presence.look(1_201.0)
    assert telemetry.devices == 1
    presence.look(10_000.0)
    assert telemetry.devices == 0


def test_one_that_changes_its_class_is_counted_there() -> None:
    presence, one, other = Presence(), ClassTally("one"), ClassTally("other")
    presence.came("device", one, 0.0)
    presence.came("device", other, 1.0)
    assert (one.devices, other.devices) == (0, 1)


def test_names_that_are_made_up_do_not_grow_it() -> None:
    presence, tally = Presence(devices_max=10), ClassTally(None)
    for number in range(1_000):
        presence.came(f"made-up-{number}", tally, 0.0)
    assert tally.devices == 10


def test_a_device_that_comes_to_several_processes_is_counted_by_one() -> None:
    counted_by: dict[str, int] = {}
    tallies = [ClassTally("telemetry"), ClassTally("telemetry")]

    def process(number: int) -> Presence:
        def claim(device: str) -> bool:
            return counted_by.setdefault(device, number) == number

        return Presence(claim, counted_by.__delitem__)

    both = [process(1), process(2)]
    for at_s in range(10):
        for device in ("a", "b"):
            both[at_s % 2].came(device, tallies[at_s % 2], float(at_s))
    assert [tally.devices for tally in tallies] == [2, 0]
    both[0].look(10_000.0)
    both[1].came("a", tallies[1], 10_000.0)
    assert [tally.devices for tally in tallies] == [0, 1]
