"""Rejected readings, counted: totals are exact, devices are bounded, and the worst of them is never lost."""

from tidegate.pipeline.rejects import DEVICES_MAX, DEVICES_SAID, RejectCounter


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
