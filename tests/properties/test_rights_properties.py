"""Rights against a naive oracle: every topic of a small alphabet, matched by MQTT's own rules."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.identity.rights import AccessRules
from tidegate.model.identity import Access, Application, Patterns
from tidegate.mqtt.filters import compile_filter

LEVELS = ("a", "b", "ab", "")
DEPTH_MAX = 4  # one level more than a filter has: what stands behind # is seen
TOPICS = [
    "/".join(levels).encode()
    for depth in range(1, DEPTH_MAX + 1)
    for levels in itertools.product(LEVELS, repeat=depth)
    if levels != ("",)
]
NAMES = ("a", "b", "ab")


def matches(topic_filter: str, topic: bytes) -> bool:
    return bool(topic_filter) and bool(compile_filter(topic_filter).fullmatch(topic))


STRANGE = "zz"


def filters(*more: str) -> st.SearchStrategy[str]:
    levels = st.lists(st.sampled_from((*LEVELS, "+", *more)), min_size=1, max_size=DEPTH_MAX - 1)
    joined = st.tuples(levels, st.booleans()).map(lambda one: "/".join([*one[0], *(["#"] if one[1] else [])]))
    return (joined | st.just("#")).filter(bool)


patterns = st.lists(filters("{device}"), max_size=3).map(tuple)
spoken_for = st.lists(st.sampled_from((*NAMES, "a*", "*")), max_size=3).map(tuple)


def covered(topic: bytes, allowed: tuple[str, ...], name: str) -> bool:
    return any(matches(one.replace("{device}", name), topic) for one in allowed)


def names_of(speaks_for: tuple[str, ...]) -> list[str]:
    """All levels of the alphabet that it speaks for."""
    return [level for level in LEVELS if any(_is(level, said) for said in speaks_for)]


def _is(name: str, said: str) -> bool:
    return name.startswith(said[:-1]) if said.endswith("*") else name == said


@given(patterns, st.sampled_from(NAMES), filters())
def test_a_device_may_subscribe_to_what_one_pattern_covers_and_to_nothing_else(
    allowed: tuple[str, ...], name: str, asked: str
) -> None:
    access = Access(devices=Patterns(publishes=allowed, subscribes=allowed))
    rights = AccessRules(access).rights_of_device(name)
    for topic in TOPICS:
        assert rights.may_publish(topic) is covered(topic, allowed, name)
    expected = any(all(covered(topic, (one,), name) for topic in topics_of(asked)) for one in allowed)
    assert rights.may_subscribe(asked.encode()) is expected


def topics_of(asked: str) -> list[bytes]:
    """Those of the alphabet, and some with a level that is not in it: a + is more than all of the alphabet."""
    levels = [STRANGE if level == "+" else level for level in asked.split("/")]
    beyond = [levels] if levels[-1] != "#" else [[*levels[:-1], *[STRANGE] * more] for more in range(3)]
    strange = ["/".join(one).encode() for one in beyond if one]
    return [topic for topic in TOPICS if matches(asked, topic)] + strange


@given(patterns, spoken_for, filters())
def test_an_application_may_do_what_each_of_its_devices_may(
    allowed: tuple[str, ...], speaks_for: tuple[str, ...], asked: str
) -> None:
    access = Access(
        devices=Patterns(publishes=allowed, subscribes=allowed),
        applications=(Application(name="edge", speaks_for=speaks_for),),
    )
    rights = AccessRules(access).rights_of_application("edge")
    names = names_of(speaks_for)
    for topic in TOPICS:
        assert rights.may_publish(topic) is any(covered(topic, allowed, name) for name in names)
    if rights.may_subscribe(asked.encode()):
        every = [*names, *([STRANGE] if "*" in speaks_for else [])]
        assert all(any(covered(topic, allowed, name) for name in every) for topic in topics_of(asked))


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_name_is_literal(name: str, other: str) -> None:
    if any(one in "/+#\0" for one in name + other):
        return
    rights = AccessRules(Access()).rights_of_device(name)
    assert rights.may_publish(f"telemetry/{other}/x".encode()) is (name == other)
