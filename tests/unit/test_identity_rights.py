"""What a client may publish and subscribe to, case by case."""

import time

import pytest

from tidegate.gateway.identity.rights import EVERYTHING, AccessRules, Rights
from tidegate.model.identity import Access, Application, Patterns

ACCESS = Access(
    applications=(
        Application(name="analytics", subscribes=("telemetry/+/temperature", "telemetry/+/alarm/#")),
        Application(name="bridge", publishes=("plant/{device}/#",), speaks_for=("pump-*", "valve-1")),
        Application(name="site", speaks_for=("*",)),
        Application(name="all", publishes=("#",), subscribes=("+/#",)),
        Application(name="root", publishes=("/#", "/"), subscribes=("/+",)),
    )
)
RULES = AccessRules(ACCESS)


def rights(name: str) -> Rights:
    return RULES.rights_of_application(name) if RULES.application(name) else RULES.rights_of_device(name)


PUBLISHES = [
    pytest.param("pump-1", "telemetry/pump-1", True, id="a device below its own name"),
    pytest.param("pump-1", "telemetry/pump-1/alarm/x", True, id="and further down"),
    pytest.param("pump-1", "telemetry/pump-10", False, id="not where another name begins like its own"),
    pytest.param("pump-1", "telemetry/pump", False, id="not where its name has only begun"),
    pytest.param("pump-1", "telemetry/pump-2", False, id="not as another"),
    pytest.param("pump-1", "telemetry", False, id="not above itself"),
    pytest.param("pump-1", "downlink/pump-1", False, id="not to its own downlink"),
    pytest.param("pump-1", "tidegate/advice", False, id="no advice"),
    pytest.param("all", "tidegate/advice", False, id="no advice, whoever it is"),
    pytest.param("all", "$SYS/x", False, id="nothing of the broker's own, whoever it is"),
    pytest.param("all", "a//b", True, id="everything else"),
    pytest.param("a.b*(", "telemetry/a.b*(", True, id="a name is what it is"),
    pytest.param("a.b*(", "telemetry/axb*(", False, id="and matches nothing else"),
    pytest.param("{device}", "telemetry/{device}/x", True, id="a device may be called like the place of a name"),
    pytest.param("pump-1", "telemetry/{device}/x", False, id="which is nobody else's name"),
    pytest.param("bridge", "telemetry/pump-7/alarm", True, id="an application for a device whose name begins so"),
    pytest.param("bridge", "telemetry/valve-1", True, id="for a device that is named"),
    pytest.param("bridge", "telemetry/valve-11", False, id="not for one that is not"),
    pytest.param("bridge", "telemetry/bridge", False, id="and not as if it were a device"),
    pytest.param("bridge", "plant/bridge/x", True, id="but below its own pattern"),
    pytest.param("analytics", "telemetry/analytics", False, id="an application is no device"),
    pytest.param("site", "telemetry/any/thing", True, id="for all devices"),
    pytest.param("site", "telemetry", False, id="and not above them"),
    pytest.param("root", "/a/b", True, id="an empty first level"),
    pytest.param("root", "a/b", False, id="which is not any level"),
    pytest.param("root", "/", True, id="two empty levels"),
]
SUBSCRIBES = [
    pytest.param("pump-1", "downlink/pump-1", True, id="a device its downlink"),
    pytest.param("pump-1", "downlink/pump-1/#", True, id="and all below it"),
    pytest.param("pump-1", "downlink/pump-1/+/x", True, id="and a part of that"),
    pytest.param("pump-1", "downlink/+", False, id="not everybody's"),
    pytest.param("pump-1", "downlink/#", False, id="not everybody's, by #"),
    pytest.param("pump-1", "#", False, id="not everything"),
    pytest.param("pump-1", "+/pump-1", False, id="not what only happens to be its own"),
    pytest.param("pump-1", "telemetry/pump-1", False, id="not its own telemetry"),
    pytest.param("analytics", "telemetry/+/temperature", True, id="the pattern itself"),
    pytest.param("analytics", "telemetry/pump-1/temperature", True, id="a part of the pattern"),
    pytest.param("analytics", "telemetry/#", False, id="not more than the pattern"),
    pytest.param("analytics", "telemetry/+/+", False, id="not more than the pattern, by +"),
    pytest.param("analytics", "telemetry/+/alarm", True, id="# covers its parent"),
    pytest.param("analytics", "telemetry/+/alarm/+/#", True, id="and the rest"),
    pytest.param("all", "#", True, id="+/# is everything"),
    pytest.param("all", "+", True, id="and any one level"),
    pytest.param("all", "$SYS/#", False, id="but nothing of the broker's own"),
    pytest.param("bridge", "downlink/pump-1/x", True, id="for a device"),
    pytest.param("bridge", "downlink/+", False, id="not for all when it speaks for some"),
    pytest.param("site", "downlink/+", True, id="for all when it speaks for all"),
    pytest.param("site", "downlink/+/#", True, id="and all below them"),
    pytest.param("site", "downlink/#", False, id="but not what is above them"),
    pytest.param("root", "/+", True, id="below an empty level"),
    pytest.param("root", "+/+", False, id="not below any level"),
]


@pytest.mark.parametrize(("who", "topic", "may"), PUBLISHES)
def test_publishing(who: str, topic: str, may: bool) -> None:
    assert rights(who).may_publish(topic.encode()) is may


@pytest.mark.parametrize(("who", "topic_filter", "may"), SUBSCRIBES)
def test_subscribing(who: str, topic_filter: str, may: bool) -> None:
    assert rights(who).may_subscribe(topic_filter.encode()) is may


def test_a_name_at_two_places_is_the_same_name() -> None:
    patterns = Patterns(publishes=("{device}/to/{device}",), subscribes=("{device}/to/{device}",))
    rules = AccessRules(Access(devices=patterns, applications=(Application(name="site", speaks_for=("*",)),)))
    assert rules.rights_of_device("a").may_publish(b"a/to/a")
    assert not rules.rights_of_device("a").may_publish(b"a/to/b")
    site = rules.rights_of_application("site")
    assert (site.may_publish(b"a/to/a"), site.may_publish(b"a/to/b")) == (True, False)
    assert not site.may_subscribe(b"+/to/+"), "that would be a to b as well"


def test_who_may_everything_may_nothing_of_the_brokers_own() -> None:
    every = Rights("x", EVERYTHING)
    assert [every.may_publish(topic) for topic in (b"a", b"/", b"$SYS/a", b"tidegate/advice")] == [
        True,
        True,
        False,
        False,
    ]
    assert [every.may_subscribe(one) for one in (b"#", b"+/a", b"$SYS/#", b"$share/g/a")] == [True, True, False, False]


def test_ten_thousand_names_are_spoken_for_as_quickly_as_one() -> None:
    def took_s(names: tuple[str, ...]) -> float:
        rules = AccessRules(Access(applications=(Application(name="edge", speaks_for=names),)))
        edge = rules.rights_of_application("edge")
        best = float("inf")
        for _ in range(20):
            begun = time.perf_counter()
            for _ in range(200):
                assert edge.may_publish(b"telemetry/pump-1/x")
                assert not edge.may_publish(b"telemetry/other/x")
            best = min(best, time.perf_counter() - begun)
        return best

    one = took_s(("pump-1",))
    assert took_s(tuple(f"pump-{number}" for number in range(10_000))) < 3 * one
    assert took_s(tuple(f"pump-{number}*" for number in range(10_000))) < 10 * one, "one step per length of a beginning"
