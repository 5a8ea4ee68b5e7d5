"""The index of filters: after any history it finds what comparing with every filter would find, at a bounded cost."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tidegate.mqtt.filter_index import SHAPES_MAX, FilterIndex, shape_of
from tidegate.mqtt.filters import compile_filter

WORDS = (b"", b"a", b"b", b"$a", b"a b")
levels = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
topics = levels.map(b"/".join).filter(bool)
filters = st.builds(
    lambda words, has_rest: b"/".join([*words, b"#"] if has_rest else words),
    st.lists(st.sampled_from((*WORDS, b"+", b"+")), min_size=1, max_size=4),
    st.booleans(),
).filter(bool) | st.just(b"#")
histories = st.lists(st.tuples(st.booleans(), filters), max_size=40)


@given(histories, st.lists(topics, min_size=1, max_size=5))
def test_it_finds_what_comparing_with_each_finds(history: list[tuple[bool, bytes]], asked: list[bytes]) -> None:
    index, naive = FilterIndex[bytes](shapes_max=1_000), dict[bytes, bytes]()
    for is_put, topic_filter in history:
        if is_put:
            index.put(topic_filter, topic_filter)
            naive[topic_filter] = topic_filter
        else:
            assert index.pop(topic_filter) == naive.pop(topic_filter, None)
    assert len(index) == len(naive)
    for topic in asked:
        expected = sorted(each for each in naive if compile_filter(each.decode()).fullmatch(topic))
        assert sorted(index.matching(topic)) == expected


@given(filters, topics)
def test_a_shape_gives_the_filter_that_matches_or_none(topic_filter: bytes, topic: bytes) -> None:
    shape = shape_of(topic_filter)
    matches = bool(compile_filter(topic_filter.decode()).fullmatch(topic))
    if shape is None:
        assert matches is (topic_filter == topic)
    else:
        assert matches is (shape.filter_of(topic.split(b"/")) == topic_filter)


@given(st.lists(filters, max_size=60), st.integers(1, 4))
def test_room_is_for_so_many_shapes_and_comes_back(asked: list[bytes], shapes_max: int) -> None:
    index = FilterIndex[int](shapes_max)
    for number, topic_filter in enumerate(asked):
        if index.has_room_for(topic_filter):
            index.put(topic_filter, number)
    assert len({shape for each in asked if each in index and (shape := shape_of(each))}) <= shapes_max
    for topic_filter in asked:
        index.pop(topic_filter)
    assert len(index) == 0
    assert all(index.has_room_for(topic_filter) for topic_filter in asked)


def test_thousands_of_filters_cost_a_look_up_per_shape() -> None:
    index = FilterIndex[int]()
    for number in range(4_000):
        index.put(b"site/%d/+" % number, number)
    for number, wild in enumerate(itertools.product((b"+", b"a"), repeat=11)):
        topic_filter = b"/".join(wild) + b"/x"
        if index.has_room_for(topic_filter):
            index.put(topic_filter, number)
    assert len(index._shapes) == SHAPES_MAX
    assert list(index.matching(b"site/1234/temperature")) == [1234]
