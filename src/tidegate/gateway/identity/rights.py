"""What one client may publish and subscribe to, decided in less than a microsecond. Compiled where that is possible.

A client may subscribe to a filter only if every topic that the filter matches is covered by one pattern. Patterns
without ``+`` are compared as bytes from the front, whatever stands in a name: a name is never a part of an expression.
What all clients share is in ``AccessRules``; a connection keeps its own name and references besides.
"""

from typing import Final

from tidegate.model.advice import ADVICE_TOPIC
from tidegate.model.identity import EVERY, OWN_NAME, Access, Application

_ADVICE: Final = ADVICE_TOPIC.encode()
_OWN: Final = OWN_NAME.encode()
_ONE: Final = b"+"
_REST: Final = b"#"
_SERVER: Final = b"$"
_SLASH: Final = b"/"
_SLASH_CODE: Final = 0x2F


class Pattern:
    """One allowed filter: ``head``, the client's name where it has a place there, ``tail``, and everything below.

    Only a pattern with a ``+``, or with the name in it twice, is compared level by level.
    """

    __slots__ = ("_has_name", "_has_rest", "_head", "_is_everything", "_levels", "_names", "_tail")

    def __init__(self, text: str) -> None:
        levels = text.encode().split(_SLASH)
        if levels == [_ONE, _REST]:
            levels = [_REST]  # the same topics
        self._is_everything = levels == [_REST]
        self._names = levels.count(_OWN)
        self._has_name = self._names > 0
        self._has_rest = levels[-1] == _REST
        self._levels: list[bytes] = levels if self._names > 1 or _ONE in levels else []
        fixed = _SLASH.join(levels[:-1] if self._has_rest else levels)
        at = len(_SLASH.join([*levels[: levels.index(_OWN)], b""])) if self._has_name else len(fixed)
        self._head, self._tail = fixed[:at], fixed[at + len(_OWN) :] if self._has_name else b""

    def covers(self, given: bytes, name: bytes) -> bool:
        """Whether it covers a topic, or every topic of a filter, for the client of that name."""
        if self._is_everything:
            return True
        if self._levels:
            return self._covers_levels(given.split(_SLASH), name)
        at = len(self._head)
        if given[:at] != self._head:
            return False
        if self._has_name:
            begin, at = at, at + len(name)
            if given[begin:at] != name:
                return False
            if self._tail:
                begin, at = at, at + len(self._tail)
                if given[begin:at] != self._tail:
                    return False
        return at == len(given) or (self._has_rest and given[at] == _SLASH_CODE)

    def _covers_levels(self, given: list[bytes], name: bytes) -> bool:
        count = len(given)
        for at, level in enumerate(self._levels):
            if level == _REST:
                return True
            if at >= count:
                return False
            one = given[at]
            if level == _ONE:
                if one == _REST:
                    return False
            elif one != (name if level == _OWN else level):
                return False
        return count == len(self._levels)

    def covers_for(self, given: bytes, spoken_for: "SpokenFor") -> bool:
        """The same for a client that speaks for others: for the one whose name stands where this pattern has it."""
        if not self._has_name:
            return self.covers(given, b"")
        name = self._named_in(given)
        if name is None or not spoken_for.has(name):
            return False
        # Any name at two places is not the same name at both.
        return (name != _ONE or self._names == 1) and self.covers(given, name)

    def _named_in(self, given: bytes) -> bytes | None:
        if self._levels:
            levels, at = given.split(_SLASH), self._levels.index(_OWN)
            return levels[at] if at < len(levels) else None
        if not given.startswith(self._head):
            return None
        begin = len(self._head)
        end = given.find(_SLASH, begin)
        return given[begin:] if end < 0 else given[begin:end]


class SpokenFor:
    """The devices that an application speaks for: names, and what names begin with, both found without a search."""

    __slots__ = ("_beginnings", "_lengths", "_names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = {name.encode() for name in names if not name.endswith(EVERY)}
        self._beginnings = {name.removesuffix(EVERY).encode() for name in names if name.endswith(EVERY)}
        self._lengths = sorted({len(beginning) for beginning in self._beginnings})

    def has(self, name: bytes) -> bool:
        """``+`` is any name, and only there for who speaks for all of them; ``#`` is more than a name."""
        if name == _REST:
            return False
        if name in self._names:
            return True
        for length in self._lengths:
            if length > len(name):
                return False
            if name[:length] in self._beginnings:
                return True
        return False


def _patterns(texts: tuple[str, ...]) -> list[Pattern]:
    """Without those that another one covers: ``a`` beside ``a/#``."""
    kept: dict[str, Pattern] = {text: Pattern(text) for text in texts}
    for text in texts:
        others = [pattern for other, pattern in kept.items() if other != text]
        if any(pattern.covers(text.encode(), _OWN) for pattern in others):
            kept.pop(text, None)
    return list(kept.values())


class Grant:
    """What somebody may do under a name."""

    __slots__ = ("publishes", "subscribes", "texts")

    def __init__(self, publishes: tuple[str, ...], subscribes: tuple[str, ...]) -> None:
        self.texts = (publishes, subscribes)
        self.publishes = _patterns(publishes)
        self.subscribes = _patterns(subscribes)


class Rights:
    """Of one client. ``devices`` is what devices may do, for a client that speaks for some of them."""

    __slots__ = ("_devices", "_grant", "_name", "_spoken_for")

    def __init__(
        self, name: str, grant: Grant, spoken_for: SpokenFor | None = None, devices: Grant | None = None
    ) -> None:
        self._name = name.encode()
        self._grant = grant
        self._spoken_for = spoken_for
        self._devices = devices

    def is_like(self, other: "Rights") -> bool:
        """Whether both allow the same for certain: by the same patterns, for the same name."""
        if self._name != other._name or self._spoken_for is not other._spoken_for:
            return False
        return self._grant is other._grant or self._grant.texts == other._grant.texts

    def may_publish(self, topic: bytes) -> bool:
        if topic.startswith(_SERVER) or topic == _ADVICE:
            return False
        for pattern in self._grant.publishes:
            if pattern.covers(topic, self._name):
                return True
        devices, spoken_for = self._devices, self._spoken_for
        if devices is not None and spoken_for is not None:
            for pattern in devices.publishes:
                if pattern.covers_for(topic, spoken_for):
                    return True
        return False

    def may_subscribe(self, topic_filter: bytes) -> bool:
        """The filter comes without the name of a shared subscription's group."""
        if topic_filter.startswith(_SERVER):
            return False
        for pattern in self._grant.subscribes:
            if pattern.covers(topic_filter, self._name):
                return True
        devices, spoken_for = self._devices, self._spoken_for
        if devices is not None and spoken_for is not None:
            for pattern in devices.subscribes:
                if pattern.covers_for(topic_filter, spoken_for):
                    return True
        return False


class AccessRules:
    """An ``Access`` made ready, once for all clients of a process."""

    __slots__ = ("_applications", "_devices", "_rights")

    def __init__(self, access: Access) -> None:
        self._devices = Grant(access.devices.publishes, access.devices.subscribes)
        self._applications: dict[str, Application] = {one.name: one for one in access.applications}
        self._rights: dict[str, Rights] = {one.name: self._of(one) for one in access.applications}

    def _of(self, application: Application) -> Rights:
        grant = Grant(application.publishes, application.subscribes)
        if not application.speaks_for:
            return Rights(application.name, grant)
        return Rights(application.name, grant, SpokenFor(application.speaks_for), self._devices)

    def is_application(self, name: str) -> bool:
        return name in self._applications

    def application(self, name: str) -> Application | None:
        return self._applications.get(name)

    def rights_of_application(self, name: str) -> Rights:
        return self._rights[name]

    def rights_of_device(self, name: str) -> Rights:
        return Rights(name, self._devices)


EVERYTHING: Final = Grant(("#",), ("#",))
ANYTHING: Final = Rights("", EVERYTHING)  # of somebody whom nobody asks
