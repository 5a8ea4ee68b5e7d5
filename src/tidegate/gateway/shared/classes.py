"""The classes of devices at one gateway: of which class a topic is, and what each class did.

A session is matched once, by its first publish, and keeps the count that it was given: its later messages cost no
further look at their topics.
"""

import re
from collections.abc import Sequence

from tidegate.gateway.shared import layout
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.tally import ClassTally
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.observations import ClassState
from tidegate.mqtt.filters import compile_filter

# Advice names every class, and has to stay a message that a small device can read.
CLASSES_MAX = layout.CLASSES_MAX


class Classes:
    """Counted in the row that ``counters`` has; without one, for this object alone."""

    def __init__(self, classes: Sequence[DeviceClass], counters: Counters | None = None) -> None:
        if len(classes) > CLASSES_MAX:
            raise UserError(f"There are {len(classes)} device classes: keep at most {CLASSES_MAX}.")
        self._cells = (counters or Counters()).cells
        self._filters: list[tuple[re.Pattern[bytes], ClassTally]] = []
        self._counts: dict[str, ClassTally] = {}
        self._classless = ClassTally(None)
        for one in classes:
            if one.name in self._counts:
                raise UserError(f"Two device classes are named {one.name}: rename one, or join their topics.")
            count = self._counts[one.name] = ClassTally(one.name)
            self._filters.extend((_compiled(text, one.name), count) for text in one.topics)

    def of(self, topic: bytes) -> ClassTally:
        """The first class that has a filter for this topic."""
        return next((count for pattern, count in self._filters if pattern.fullmatch(topic)), self._classless)

    def tell(self) -> None:
        """What was tallied, for all processes to see."""
        for number, count in enumerate(self._counts.values()):
            self._cells[layout.CLASS_DEVICES + number] = count.devices
            self._cells[layout.CLASS_PUBLISHES + number] = count.publishes
        self._cells[layout.CLASSLESS_DEVICES] = self._classless.devices

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
