"""Topic names and topic filters: what MQTT allows in them."""

import re

from tidegate.mqtt.fields import is_text
from tidegate.mqtt.violations import (
    TOPIC_FILTER_INVALID,
    TOPIC_NAME_INVALID,
    Violation,
    malformed,
    protocol_error,
)

_WILDCARD = re.compile(rb"[+#]")
_SHARED = b"$share/"


def check_topic(topic: bytes) -> None:
    """A topic to publish on."""
    if not topic:
        raise protocol_error("empty topic")
    if not is_text(topic):
        raise malformed("malformed text")
    if _WILDCARD.search(topic):
        raise Violation(TOPIC_NAME_INVALID, "malformed topic", "wildcard in a topic")


def check_filter(topic_filter: bytes, version: int) -> None:
    """A filter to subscribe to. ``$share`` means something from MQTT 5 on; before it is a level like any other."""
    if not topic_filter:
        raise protocol_error("empty topic filter")
    if not is_text(topic_filter):
        raise malformed("malformed text")
    levels = topic_filter.split(b"/")
    if any(len(level) > 1 and _WILDCARD.search(level) for level in levels) or b"#" in levels[:-1]:
        raise Violation(TOPIC_FILTER_INVALID, "malformed filter", "misplaced wildcard")
    if version == 5 and is_shared(topic_filter):
        _, name, *rest = levels
        if not name or _WILDCARD.search(name) or rest in ([], [b""]):
            raise Violation(TOPIC_FILTER_INVALID, "malformed filter", "bad shared subscription")


def is_shared(topic_filter: bytes) -> bool:
    return topic_filter.startswith(_SHARED)
