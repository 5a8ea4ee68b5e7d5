"""Rejected readings, counted: totals are exact, devices are bounded, and the worst of them is never lost."""

import msgspec

from tidegate.pipeline.rejects import DEVICES_MAX, DEVICES_SAID, NAME_CHARACTERS_MAX, RejectCounter


def test_reasons_are_counted_exactly_and_the_worst_devices_named() -> None:
    counter = RejectCounter()
    counter.add({("pump", "too old"): 3, ("valve", "not JSON"): 1})
    counter.add({("pump", "too old"): 2})
    assert counter.by_reason == {"too old": 5, "not JSON": 1}
    assert counter.worst() == (("pump", "too old", 5), ("valve", "not JSON", 1))


def test_made_up_names_fill_no_memory_and_hide_nobody() -> None:
    counter = RejectCounter()
    for number in range(10 * DEVICES_MAX):
        counter.add({(f"made-up-{number}", "not JSON"): 1, ("pump", "identity used twice"): 1})
    assert len(counter._by_device) <= 2 * DEVICES_MAX
    assert counter.worst()[0] == ("pump", "identity used twice", 10 * DEVICES_MAX)
    assert len(counter.worst()) == DEVICES_SAID
    assert counter.by_reason["not JSON"] == 10 * DEVICES_MAX


def test_long_names_are_cut_and_stay_apart() -> None:
    """Twenty names of 64 KiB would not fit into a message of the control bus."""
    counter = RejectCounter()
    names = [character * 60_000 + str(number) for number in range(2) for character in ("a", "\x07", "\U00020bb7")]
    longest = "n" * NAME_CHARACTERS_MAX
    counter.add(dict.fromkeys(((name, "not JSON") for name in (*names, longest)), 1))
    counter.add({(names[0], "not JSON"): 5})
    said = counter.worst()
    assert len({device for device, _, _ in said}) == len(names) + 1
    assert max(len(device) for device, _, _ in said) == NAME_CHARACTERS_MAX
    assert said[0][0].startswith("a" * 100)
    assert said[0][2] == 6
    assert longest in {device for device, _, _ in said}
    assert len(msgspec.json.encode(said)) < 10_000
