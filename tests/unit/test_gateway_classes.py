"""Of which class a topic is, and what a gateway counts of each class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import Session
from tidegate.gateway.identity.rights import ANYTHING
from tidegate.gateway.shared.classes import CLASSES_MAX, Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.observations import ClassState
from tidegate.mqtt.client import encode_publish
from tidegate.mqtt.filters import compile_filter


@pytest.mark.parametrize(
    ("filter_", "matching", "others"),
    [
        pytest.param("a/b", ["a/b"], ["a", "a/b/", "a/b/c", "A/b", "xa/b", "a/bb"], id="no wildcard: itself alone"),
        pytest.param("a/+", ["a/b", "a/", "a/b c"], ["a", "a/b/c", "/a"], id="+ is exactly one level, even empty"),
        pytest.param("+", ["a", "temperature"], ["a/b", "/a", "$SYS"], id="a lone +"),
        pytest.param("+/+", ["/a", "a/", "/"], ["a", "a/b/c", "$SYS/a"], id="+ twice"),
        pytest.param("a/+/c", ["a/b/c", "a//c"], ["a/b", "a/b/c/d", "a/b/b/c"], id="+ in the middle"),
        pytest.param("a/#", ["a", "a/", "a/b", "a/b/c"], ["ab", "b/a", "b"], id="# is its parent too"),
        pytest.param("a/+/#", ["a/b", "a/b/c/d"], ["a", "b/a"], id="+ then #"),
        pytest.param(
            "#", ["a", "a/b", "/", "/a", "line\nbreak"], ["$SYS", "$SYS/a"], id="# is all but the server's own"
        ),
        pytest.param("/#", ["/", "/a", "/a/b"], ["a", "a/b"], id="a first level that is empty"),
        pytest.param("$SYS/#", ["$SYS", "$SYS/a"], ["SYS/a", "a"], id="the server's own, where it is named"),
        pytest.param("a/$b/+", ["a/$b/c"], ["a/b/c"], id="$ further down is a character"),
        pytest.param("a.c/(d)", ["a.c/(d)"], ["abc/(d)", "a.c/d"], id="nothing else is a wildcard"),
        pytest.param("wärme/+", ["wärme/öl"], ["warme/öl"], id="beyond ASCII"),
    ],
)
def test_what_a_filter_matches(filter_: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_filter(filter_)
    assert [topic for topic in [*matching, *others] if compiled.fullmatch(topic.encode())] == matching


LEVELS = st.lists(st.sampled_from(["", "a", "b", "$c"]), min_size=1, max_size=4)
FILTERS = st.builds(
    lambda levels, rest: [*levels, *(["#"] if rest else [])],
    st.lists(st.sampled_from(["", "a", "b", "$c", "+"]), min_size=1, max_size=4),
    st.booleans(),
)


def matches(levels: list[str], topic: list[str]) -> bool:
    """The standard, level by level."""
    if topic[0].startswith("$") and levels[0] in ("+", "#"):
        return False
    for place, level in enumerate(levels):
        if level == "#":
            return True
        if place >= len(topic) or level not in ("+", topic[place]):
            return False
    return len(levels) == len(topic)


@given(FILTERS, LEVELS)
def test_a_compiled_filter_agrees_with_the_standard(levels: list[str], topic: list[str]) -> None:
    text = "/".join(levels)
    if text:
        found = compile_filter(text).fullmatch("/".join(topic).encode())
        assert (found is not None) == matches(levels, topic)


@pytest.mark.parametrize(
    ("filter_", "sentence"),
    [
        ("", "1 to 65,535 bytes"),
        ("a\0b", "without NUL"),
        ("a" * 65_536, "1 to 65,535 bytes"),
        ("a/#/b", "# has to be its last level"),
        ("a/b#", "whole levels"),
        ("a/b+/c", "whole levels"),
        ("##", "whole levels"),
    ],
)
def test_what_is_no_filter_is_said_with_its_class(filter_: str, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^The device class odd has the topic filter .*{sentence}"):
        Classes([DeviceClass(name="odd", topics=("a", filter_))])


def test_classes_that_cannot_be_told_apart_or_are_too_many_are_refused() -> None:
    with pytest.raises(UserError, match="Two device classes are named a"):
        Classes([DeviceClass(name="a"), DeviceClass(name="b"), DeviceClass(name="a")])
    with pytest.raises(UserError, match="There are 17 device classes"):
        Classes([DeviceClass(name=f"c{number}") for number in range(CLASSES_MAX + 1)])


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("telemetry/pump-7", "telemetry"),
        ("telemetry/pump-7/alarm", "alarm"),
        ("telemetry/pump-7/alarm/high", "alarm"),
        ("telemetry/pump-7/command", "command"),
        ("telemetry/alarm", "telemetry"),
        ("telemetry/pump-7/flow/alarm", "telemetry"),
        ("elsewhere", "telemetry"),
        ("$SYS/alarm", None),
    ],
)
def test_the_first_class_that_matches_counts(topic: str, name: str | None) -> None:
    assert Classes(DEFAULT_CLASSES).of(topic.encode()).name == name


LIMITS = Limits(packet_bytes_max=10_000, topic_bytes_max=4_096, properties_max=64, keep_alive_s_max=65_535)


class Device:
    """One session, and what its device says."""

    def __init__(self, classes: Classes, counters: Counters) -> None:
        advice = AdviceInForce(lambda: 0.0)
        hold = Hold(ClientCredits(50_000, 10_000, 0.0), bytes_max=65_536, hold_s_max=30.0)
        rules = TopicRules(DEFAULT_CLASSES)
        passing = Passing(hold, rules, classes, advice, counters, enforces=False, version=4, tells_quota=False)
        self.session = Session(4, LIMITS, advice, passing, ANYTHING)

    def from_device(self, data: bytes) -> None:
        self.session.from_device(data, 0.0)

    def leave(self) -> None:
        self.session.leave()


class Sessions:
    """Several devices at one gateway."""

    def __init__(self, classes: tuple[DeviceClass, ...] = DEFAULT_CLASSES) -> None:
        self.counters = Counters()
        self.classes = Classes(classes, self.counters)

    def open(self) -> "Device":
        return Device(self.classes, self.counters)

    def found(self) -> dict[str, tuple[int, int]]:
        return {name: (one.devices, one.publishes) for name, one in self.classes.state().items()}


def publish(topic: str, count: int = 1) -> bytes:
    return encode_publish(topic.encode(), b"1", packet_id=1) * count


def test_a_device_is_counted_from_its_first_publish_until_it_leaves() -> None:
    gate = Sessions()
    pump, silent, siren = gate.open(), gate.open(), gate.open()
    assert gate.found() == {}
    pump.from_device(publish("telemetry/pump", 3))
    siren.from_device(b"\xc0\x00" + publish("telemetry/siren/alarm"))
    silent.from_device(b"\xc0\x00")
    assert gate.found() == {"telemetry": (1, 3), "alarm": (1, 1)}
    pump.from_device(publish("telemetry/pump"))
    pump.leave()
    silent.leave()
    assert gate.found() == {"telemetry": (0, 4), "alarm": (1, 1)}
    siren.leave()
    siren.leave()
    assert gate.classes.state()["alarm"] == ClassState(devices=0, publishes=1)
    assert gate.counters.publishes == 5


def test_a_device_stays_in_the_class_of_its_first_publish() -> None:
    gate = Sessions()
    device = gate.open()
    device.from_device(publish("telemetry/d/alarm") + publish("telemetry/d", 2))
    device.from_device(publish("telemetry/d/command"))
    assert gate.found() == {"alarm": (1, 4)}


def test_a_first_publish_in_pieces_is_matched_when_it_is_whole() -> None:
    gate, packet = Sessions(), publish("telemetry/d/alarm")
    device = gate.open()
    device.from_device(packet[:9])
    assert gate.found() == {}
    device.from_device(packet[9:])
    assert gate.found() == {"alarm": (1, 1)}


def test_what_no_class_asks_for_is_in_no_class() -> None:
    gate = Sessions((DeviceClass(name="alarm", topics=("telemetry/+/alarm",)),))
    device = gate.open()
    device.from_device(publish("telemetry/d"))
    device.from_device(publish("telemetry/d/alarm"))
    assert gate.found() == {}
    device.leave()
    assert gate.counters.publishes == 2


def test_forged_advice_is_in_no_class() -> None:
    gate = Sessions()
    device = gate.open()
    device.from_device(publish("tidegate/advice"))
    assert device.session.problem == "forged advice"
    assert gate.found() == {}
