"""Topic aliases of MQTT 5: numbers that stand for topics, on one connection, in one direction."""

from tidegate.mqtt.violations import TOPIC_ALIAS_INVALID, Violation, protocol_error

TOPIC_ALIAS_MAX = 65_535  # what MQTT can write


class TopicAliases:
    """What a device has given numbers to. At most ``count_max`` topics are remembered."""

    def __init__(self, count_max: int = TOPIC_ALIAS_MAX) -> None:
        self._count_max = count_max
        self._topics: dict[int, bytes] = {}

    def resolve(self, topic: bytes, alias: int | None) -> bytes:
        """The topic that is meant. A topic beside an alias gives that number a new meaning."""
        if alias is None:
            if not topic:
                raise protocol_error("no topic")
            return topic
        if not 0 < alias <= self._count_max:
            raise Violation(TOPIC_ALIAS_INVALID, "topic alias invalid", "beyond the maximum")
        if topic:
            self._topics[alias] = topic
            return topic
        known = self._topics.get(alias)
        if known is None:
            raise protocol_error("unknown topic alias")
        return known
