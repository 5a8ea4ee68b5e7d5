"""Values by topic filter, and which of them match a topic, without a look at each.

Filters differ in their words more than in their shape: where their wildcards stand, and how many levels they have. A
shape turns a topic into the one filter of that shape which matches it, and that one is looked up. So a topic costs a
look-up per shape, however many filters there are, and the number of shapes has a bound.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

SHAPES_MAX = 64
_ONE_LEVEL, _REST = b"+", b"#"

Value = TypeVar("Value")


class Shape(NamedTuple):
    """Of a filter with a wildcard."""

    levels: int  # without the last one that stands for all the rest
    wild: tuple[int, ...]  # levels that are ``+``
    has_rest: bool

    def filter_of(self, topic: list[bytes]) -> bytes | None:
        """The filter of this shape that matches a topic, given by its levels; None where none does."""
        if len(topic) < self.levels or (len(topic) > self.levels and not self.has_rest):
            return None
        # Topics that begin with $ are a server's own: no wildcard stands for their first level.
        if topic[0].startswith(b"$") and (self.levels == 0 or 0 in self.wild[:1]):
            return None
        parts = topic[: self.levels]
        for place in self.wild:
            parts[place] = _ONE_LEVEL
        if self.has_rest:
            parts.append(_REST)
        return b"/".join(parts)


def shape_of(topic_filter: bytes) -> Shape | None:
    """None where it has no wildcard: such a filter is the one topic that it matches."""
    levels = topic_filter.split(b"/")
    has_rest = levels[-1] == _REST
    wild = tuple(place for place, level in enumerate(levels) if level == _ONE_LEVEL)
    return Shape(len(levels) - has_rest, wild, has_rest) if wild or has_rest else None


class FilterIndex(Generic[Value]):
    """Filters have to be valid ones, and topics without wildcards."""

    def __init__(self, shapes_max: int = SHAPES_MAX) -> None:
        self._values: dict[bytes, Value] = {}
        self._shapes: Counter[Shape] = Counter()
        self._shapes_max = shapes_max

    def __contains__(self, topic_filter: bytes) -> bool:
        return topic_filter in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, topic_filter: bytes) -> Value | None:
        return self._values.get(topic_filter)

    def has_room_for(self, topic_filter: bytes) -> bool:
        shape = shape_of(topic_filter)
        return shape is None or shape in self._shapes or len(self._shapes) < self._shapes_max

    def put(self, topic_filter: bytes, value: Value) -> None:
        """Ask before whether there is room for a new one."""
        if topic_filter not in self._values and (shape := shape_of(topic_filter)) is not None:
            self._shapes[shape] += 1
        self._values[topic_filter] = value

    def pop(self, topic_filter: bytes) -> Value | None:
        value = self._values.pop(topic_filter, None)
        if value is not None and (shape := shape_of(topic_filter)) is not None:
            self._shapes[shape] -= 1
            if not self._shapes[shape]:
                del self._shapes[shape]
        return value

    def matching(self, topic: bytes) -> Iterator[Value]:
        """What is kept under every filter that matches."""
        if (value := self._values.get(topic)) is not None:
            yield value
        levels = topic.split(b"/")
        for shape in self._shapes:
            fitting = shape.filter_of(levels)
            if fitting is not None and (value := self._values.get(fitting)) is not None:
                yield value
