"""The classes of devices at one gateway: of which class a topic is, and what each class did.

A session is matched once, by its first publish, and keeps the count that it was given: its later messages cost no
further look at their topics.
"""

import re
from collections.abc import Sequence

import msgspec

from tidegate.gateway.mqtt.filters import compile_filter
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.observations import ClassState

# Advice names every class, and has to stay a message that a small device can read.
CLASSES_MAX = 16


class ClassCount(msgspec.Struct):
    """One class since the gateway started. ``devices`` is how many are connected, ``publishes`` only grows."""

    name: str | None  # None: topics that no class asks for
    devices: int = 0
    publishes: int = 0


class Classes:
    def __init__(self, classes: Sequence[DeviceClass]) -> None:
        if len(classes) > CLASSES_MAX:
            raise UserError(f"There are {len(classes)} device classes: keep at most {CLASSES_MAX}.")
        self._filters: list[tuple[re.Pattern[bytes], ClassCount]] = []
        self._counts: dict[str, ClassCount] = {}
        self._classless = ClassCount(None)
        for one in classes:
            if one.name in self._counts:
                raise UserError(f"Two device classes are named {one.name}: rename one, or join their topics.")
            count = self._counts[one.name] = ClassCount(one.name)
            self._filters.extend((_compiled(text, one.name), count) for text in one.topics)

    def of(self, topic: bytes) -> ClassCount:
        """The first class that has a filter for this topic."""
        return next((count for pattern, count in self._filters if pattern.fullmatch(topic)), self._classless)

    def state(self) -> dict[str, ClassState]:
        """Every class that has published here, by its name."""
        return {
            name: ClassState(devices=count.devices, publishes=count.publishes)
            for name, count in self._counts.items()
            if count.publishes
        }


def _compiled(text: str, class_name: str) -> re.Pattern[bytes]:
    try:
        return compile_filter(text)
    except ValueError as error:
        raise UserError(f"The device class {class_name} has the topic filter {text!r:.80}: {error}.") from None
