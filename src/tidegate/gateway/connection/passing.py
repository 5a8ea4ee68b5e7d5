"""Whether a device's publish goes on now, waits, or is refused: its client's credits, its topics' limits, its class.

One object per connection. What all of them share about topics is in ``TopicRules``: which limits and which class a
topic has is found once and remembered, because a fleet publishes on few topics again and again.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from tidegate.control.limiting.credits import cost_of
from tidegate.control.limiting.token_bucket import TokenBucket
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.aliases import TopicAliases
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.tally import ClassTally
from tidegate.model.classes import DeviceClass
from tidegate.model.limits import LimitMet
from tidegate.mqtt import packets, properties
from tidegate.mqtt.filters import compile_filter
from tidegate.mqtt.frames import FrameScanner, frame_size
from tidegate.mqtt.violations import QUOTA_EXCEEDED, Violation

_TOPICS_REMEMBERED = 4_096
_QOS = 0x06


class TopicRules:
    """What the operator said about topics: limits, and what is never delayed."""

    def __init__(
        self, classes: Sequence[DeviceClass], limits: Sequence[tuple[Sequence[str], TokenBucket]] = ()
    ) -> None:
        self.has_limits = bool(limits)
        self._limits = [(_either(topics), bucket) for topics, bucket in limits]
        self._classes = [(_either(one.topics), one.never_delay) for one in classes if one.topics]
        self.unpaced = {one.name for one in classes if one.never_delay or one.event_driven}  # no interval is theirs
        self.matter = self.has_limits or any(never for _, never in self._classes)
        self.buckets = lru_cache(_TOPICS_REMEMBERED)(self._buckets)
        self.never_waits = lru_cache(_TOPICS_REMEMBERED)(self._never_waits)

    def _buckets(self, topic: bytes) -> tuple[TokenBucket, ...]:
        """Every limit that the topic falls under."""
        return tuple(bucket for pattern, bucket in self._limits if pattern.fullmatch(topic))

    def _never_waits(self, topic: bytes) -> bool:
        """Whether the first class that the topic is of may not be delayed."""
        return next((never for pattern, never in self._classes if pattern.fullmatch(topic)), False)


class Passing:
    """Of one connection. ``tells_quota``: a publish that would wait is refused in the words of MQTT 5."""

    def __init__(
        self,
        hold: Hold,
        rules: TopicRules,
        classes: Classes,
        advice: AdviceInForce,
        counters: Counters,
        *,
        enforces: bool,
        version: int,
        tells_quota: bool,
        place: float = 0.0,
    ) -> None:
        self.hold = hold
        self.counters = counters
        self.expiries_s: list[int | None] = []  # of the publishes to come, where a translation took them away
        self._rules = rules
        self._classes = classes
        self._advice = advice
        self._enforces = enforces
        self._place = place
        self._version = version
        self._tells_quota = tells_quota
        # Whether what may pass depends on the very moment: a topic's limit, or an enforced rate.
        self.needs_time = rules.has_limits
        self._answer = b""
        self._class: str | None = None
        self._joined = False
        self._revision = 0  # of the advice whose rate is enforced
        self._expires_s: dict[int, float] = {}  # of what waits, by the identity of its packet
        self._topic = b""
        self._buckets: Sequence[TokenBucket] = ()
        # An alias stands for a topic that was said once: where topics matter, every publish has to be looked at.
        self._looks_at_topics = version == 5 and rules.matter
        self._aliases = TopicAliases(0)  # until the broker has said how many it takes

    def allow_aliases(self, count_max: int) -> None:
        """As many as the broker announced: those beyond are its to judge."""
        self._aliases = TopicAliases(count_max)

    def join(self, topic: bytes) -> ClassTally:
        """The device's class, which is that of its first publish."""
        own = self._classes.of(topic)
        self._class, self._joined = own.name, True
        return own

    def passes(self, scanner: FrameScanner, now_s: float) -> bool:
        """Whether everything in a chunk may go on as it came."""
        publishes = scanner.publishes
        if not publishes:
            return True
        if self._revision != self._advice.revision:
            self.follow_advice(now_s)
        if self._looks_at_topics:
            return False
        if self._rules.has_limits:
            if scanner.topics and publishes > 1:
                return False
            if scanner.topic != self._topic:
                self._topic, self._buckets = scanner.topic, self._rules.buckets(scanner.topic)
            return self.hold.passes_limits(publishes, scanner.cost, now_s, self._buckets)
        # Nothing waits, or the session would not ask.
        return self.hold.credits.take(publishes, scanner.cost, now_s)

    def publish(self, packet: bytes, body: int, now_s: float) -> bytes:
        """One publish of a chunk that is taken apart: what goes on of it now, which may be nothing."""
        hold = self.hold
        if self._revision != self._advice.revision:
            self.follow_advice(now_s)
        expiry_s = self.expiries_s.pop(0) if self.expiries_s else None
        if self._looks_at_topics:
            packet = self._without_alias(packet, body)
            body = frame_size(packet, 0)[0]
        topic = packets.text_at(packet, body) or b""
        if self._rules.never_waits(topic):
            return packet
        cost, buckets = cost_of(len(packet)), self._rules.buckets(topic)
        if hold.passes_limits(1, cost, now_s, buckets):
            return packet
        qos = (packet[0] & _QOS) >> 1
        found = _parsed(packet, body) if self._version == 5 else None
        # A publish that names an alias must reach the broker: those behind it rely on that.
        names_alias = found is not None and bool(found.topic) and properties.TOPIC_ALIAS in found.properties.values
        if self._tells_quota and qos == 1 and not names_alias:
            self._refuse(packet, body, hold.would_meet(cost, now_s))
            return b""
        expires_s = None if names_alias else self._expiry(packet, found, expiry_s, now_s)
        hold.push(packet, qos=qos, cost=cost, now_s=now_s, buckets=buckets, expires_s=expires_s)
        self.counters.held += 1
        self.counters.held_total += 1
        return b""

    def _without_alias(self, packet: bytes, body: int) -> bytes:
        """With its topic in the place of an alias: where one may overtake another, a number that is given anew
        meanwhile would mean something else when it comes to the broker."""
        found = _parsed(packet, body)
        if found is None or properties.TOPIC_ALIAS not in found.properties.values:
            return packet
        values = dict(found.properties.values)
        alias = values.pop(properties.TOPIC_ALIAS)
        assert isinstance(alias, int)
        try:
            topic = self._aliases.resolve(found.topic, alias)
        except Violation:
            return packet  # the broker's to judge
        told = msgspec.structs.replace(found.properties, values=values)
        return packets.encode(msgspec.structs.replace(found, topic=topic, properties=told), 5)

    def release(self, now_s: float) -> list[bytes]:
        """The packets that go on now, in their order."""
        waiting = self.hold.waiting
        released = self.hold.release(now_s)
        for packet in self.hold.take_expired():
            self._expires_s.pop(id(packet), None)
            self._acknowledge_expired(packet)
        if self._expires_s:
            released = [self._with_time_left(packet, now_s) for packet in released]
        self.counters.held -= waiting - self.hold.waiting
        return released

    def abandon(self, now_s: float) -> int:
        """The connection ends. How many publishes at QoS 0 are lost with it."""
        self.counters.held -= self.hold.waiting
        self._expires_s.clear()
        return self.hold.abandon(now_s)

    def follow_advice(self, now_s: float) -> None:
        """Enforce what the device's class is advised now."""
        if self._joined:
            self._revision = self._advice.revision
            enforces = self._enforces and self._class not in self._rules.unpaced
            rate_per_s = self._advice.rate_of(self._class, self._place) if enforces else None
            self.hold.limit(rate_per_s, now_s)
            self.needs_time = self._rules.has_limits or rate_per_s is not None

    def take_answer(self) -> bytes:
        """Acknowledgements that the gateway itself gives."""
        answer, self._answer = self._answer, b""
        return answer

    # -- what is refused or has expired

    def _refuse(self, packet: bytes, body: int, met: LimitMet) -> None:
        self.counters.drop("quota exceeded")
        packet_id = _packet_id(packet, body)
        told = properties.Properties(values={properties.REASON_STRING: met.sentence().encode()})
        ack = packets.Ack(kind=packets.PUBACK, packet_id=packet_id, code=QUOTA_EXCEEDED, properties=told)
        self._answer += packets.encode(ack, 5)

    def _expiry(self, packet: bytes, found: packets.Publish | None, expiry_s: int | None, now_s: float) -> float | None:
        if found is not None:
            expiry_s = found.properties.optional_number(properties.MESSAGE_EXPIRY)
        if expiry_s is None:
            return None
        if self._version == 5:
            self._expires_s[id(packet)] = now_s + expiry_s
        return now_s + expiry_s

    def _with_time_left(self, packet: bytes, now_s: float) -> bytes:
        """A message that waited has less time left, and says so."""
        expires_s = self._expires_s.pop(id(packet), None)
        if expires_s is None:
            return packet
        publish = _parsed(packet, frame_size(packet, 0)[0])
        assert publish is not None
        values = {**publish.properties.values, properties.MESSAGE_EXPIRY: max(0, round(expires_s - now_s))}
        told = msgspec.structs.replace(publish.properties, values=values)
        return packets.encode(msgspec.structs.replace(publish, properties=told), 5)

    def _acknowledge_expired(self, packet: bytes) -> None:
        self.counters.drop("expired")
        qos = (packet[0] & _QOS) >> 1
        if qos:
            kind = packets.PUBACK if qos == 1 else packets.PUBREC
            packet_id = _packet_id(packet, frame_size(packet, 0)[0])
            self._answer += packets.encode(packets.Ack(kind=kind, packet_id=packet_id), self._version)


def _either(topics: Sequence[str]) -> re.Pattern[bytes]:
    """What matches each of several topic filters."""
    return re.compile(b"|".join([b"(?:%b)" % compile_filter(topic).pattern for topic in topics]), re.DOTALL)


def _packet_id(packet: bytes, body: int) -> int:
    place = body + 2 + (packet[body] << 8 | packet[body + 1])
    return packet[place] << 8 | packet[place + 1]


def _parsed(packet: bytes, body: int) -> packets.Publish | None:
    try:
        found = packets.parse(packet[0], packet[body:], 5, properties_max=65_535)
    except Violation:
        return None
    assert isinstance(found, packets.Publish)
    return found
