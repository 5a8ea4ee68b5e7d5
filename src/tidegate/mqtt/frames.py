"""Cuts a stream of MQTT bytes into whole packets and judges each: the innermost loop of the gateway.

Plain typed Python that imports nothing of ours, so that it can be compiled as it stands. A chunk that holds only
whole packets, which is nearly every chunk, is given back as it came: nothing is copied, and the caller can forward it
in one write. Only the unfinished packet at a chunk's end is kept. What a chunk held is told in a few numbers; where
each packet lies is asked for only by callers that have to take a chunk apart.

A device's packets are judged strictly as far as their fixed header, their topic and their packet identifier go. The
topic of a device is nearly always the one of its publish before: that one is compared instead of judged again.
"""

from collections.abc import Callable
from typing import Final

LENGTH_BYTES_MAX: Final = 4
QOS_2: Final = 1 << 16
_RESERVED: Final = 0
_PUBLISH: Final = 3
_PUBACK: Final = 4
_PUBREL: Final = 6
_PUBCOMP: Final = 7
_SUBSCRIBE: Final = 8
_UNSUBSCRIBE: Final = 10
_PINGREQ: Final = 12
_DISCONNECT: Final = 14
_AUTH: Final = 15
# CONNACK, SUBACK, UNSUBACK and PINGRESP are a broker's to say; a second CONNECT is nobody's.
_BROKERS_ALONE: Final = 1 << 1 | 1 << 2 | 1 << 9 | 1 << 11 | 1 << 13
# Reason codes of MQTT 5.
_MALFORMED: Final = 0x81
_PROTOCOL_ERROR: Final = 0x82
_NOT_AUTHORISED: Final = 0x87
_TOPIC_INVALID: Final = 0x90
_TOO_LARGE: Final = 0x95
_RATE_TOO_HIGH: Final = 0x96
_QUOTA_EXCEEDED: Final = 0x97
_SPECIAL: Final = b"+#\0*>"  # what a topic needs a closer look for: one search for all of them
# What comes in one chunk is judged in one turn of the event loop, and everybody else waits for that.
_PACKETS_MAX: Final = 16_384
_PINGS_MAX: Final = 256
_CREDIT_BYTES_SHIFT: Final = 12  # one more credit per 4 KiB of the whole packet, as ``credits.cost_of`` has it
# MQTT 5 properties by what follows their identifier: 1, 2 or 4 bytes, a variable length, a text, two texts.
_SIZES: Final = (
    b"\x00\x01\x04\x05\x00\x00\x00\x00\x05\x05\x00\x06\x00\x00\x00\x00"
    b"\x00\x04\x05\x02\x00\x05\x05\x01\x04\x01\x05\x00\x05\x00\x00\x05"
    b"\x00\x02\x02\x02\x01\x01\x07\x04\x01\x01\x01"
)
_TEXT: Final = 5
_VARIABLE: Final = 6
_TWO_TEXTS: Final = 7

# (first byte, start of the body, end): positions in the bytes that came with it. A packet starts where the last ended.
Frame = tuple[int, int, int]


def frame_size(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """(bytes of the fixed header, bytes of the packet) at a position; (0, 0) where more are needed, (-1, -1) never."""
    length = 0
    for index in range(LENGTH_BYTES_MAX):
        place = position + 1 + index
        if place >= len(data):
            return 0, 0
        byte = data[place]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return index + 2, index + 2 + length
    return -1, -1


def frames_of(data: bytes) -> list[Frame]:
    """Where each packet lies in bytes that ``FrameScanner.scan`` gave back."""
    frames: list[Frame] = []
    position, size = 0, len(data)
    while position < size:
        first = data[position]
        if data[position + 1] < 0x80:
            body = position + 2
            end = body + data[position + 1]
        else:
            header, total = frame_size(data, position)
            body, end = position + header, position + total
        frames.append((first, body, end))
        position = end
    return frames


def count_properties(data: bytes, position: int, end: int) -> int:
    """How many properties the section at a position has, which must not go beyond ``end``; -1 where it is malformed."""
    length, place = variable_length(data, position, end)
    if place < 0 or place + length > end:
        return -1
    end, count = place + length, 0
    while place < end:
        identifier = data[place]
        size = _SIZES[identifier] if identifier < len(_SIZES) else 0
        place += 1
        if size == 0:
            return -1
        if size < _TEXT:
            place += size
        elif size == _VARIABLE:
            _, place = variable_length(data, place, end)
            if place < 0:
                return -1
        else:
            for _ in range(2 if size == _TWO_TEXTS else 1):
                if place + 2 > end:
                    return -1
                place += 2 + (data[place] << 8 | data[place + 1])
        count += 1
    return count if place == end else -1


def count_filters(body: bytes, version: int, has_options: bool) -> int:
    """How many filters a SUBSCRIBE (with options) or UNSUBSCRIBE has, without a look at them; -1 where it is malformed.

    To read them all costs much more, so it is asked first whether there may be so many."""
    place, size, count = 2, len(body), 0
    if version >= 5:
        length, place = variable_length(body, place, size)
        if place < 0:
            return -1
        place += length
    behind = 3 if has_options else 2
    while place < size:
        if place + 2 > size:
            return -1
        place += behind + (body[place] << 8 | body[place + 1])
        count += 1
    return count if place == size else -1


def has_wildcard_level(topic: bytes) -> bool:
    """Whether a level is exactly ``*`` or ``>``: names like others in MQTT, but wildcards to a broker that is NATS.

    Such a broker acknowledges the message and files it where no reader finds it.
    """
    levels = topic.split(b"/")
    return b"*" in levels or b">" in levels


def variable_length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """(value, position behind it) of a number with a variable length; a position of -1 where it is none."""
    value = 0
    for index in range(LENGTH_BYTES_MAX):
        if position + index >= end:
            return 0, -1
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    return 0, -1


class FrameScanner:
    """One direction of one connection. It holds at most one unfinished packet of at most ``packet_bytes_max``.

    After each ``scan``: ``kinds`` has a bit (1 << packet type) for each type that came, and ``QOS_2`` where a publish
    was of that kind; ``publishes`` and ``cost`` (in credits) say how many and how dear, ``expecting`` how many of them
    were at QoS 1, ``acknowledged`` counts PUBACK and PUBCOMP, ``confirmed`` PUBACK alone, ``pings`` and ``packets``
    what they say. ``topic`` is that of a device's last publish, and ``topics`` how often it changed. ``problem`` says
    why no further packet can be cut, and ``code`` the same as MQTT 5 does. A device that publishes on the ``forbidden``
    topic is one that forges advice.

    ``allows`` says of a topic whether it may be published on, where that is asked at all: it is asked when a topic is
    another than before. ``refused`` counts the publishes that may not pass. MQTT 5 has words for each of them; before
    it, the first is a problem.
    """

    def __init__(  # noqa: PLR0917 - compiled code takes its arguments by place
        self,
        packet_bytes_max: int,
        topic_bytes_max: int = 65_535,
        version: int = 4,
        from_device: bool = False,
        properties_max: int = 64,
        forbidden: bytes = b"",
        allows: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.problem = ""
        self.code = 0
        self.kinds = 0
        self.publishes = 0
        self.cost = 0
        self.acknowledged = 0
        self.topics = 0
        self.pings = 0
        self.packets = 0
        self.refused = 0
        self.expecting = 0
        self.confirmed = 0
        self.topic = b""
        self.uses_aliases = False  # a publish came without its topic
        self._allows = allows
        self._is_allowed = True
        self._forbidden = forbidden
        self._packet_bytes_max = packet_bytes_max
        self._topic_bytes_max = topic_bytes_max
        self._version = version
        self._from_device = from_device
        self._properties_max = properties_max
        self._topic_field = b""  # the topic with its length before it, as it stands in a packet
        # The flags of the publish before, where one like it needs no closer look, and its least size.
        self._last_first = 0
        self._last_bytes_min = 0
        self._tail = bytearray()
        self._needed = 0
        self._ended = False

    @property
    def unfinished(self) -> int:
        """Bytes of the packet that has begun and not ended."""
        return len(self._tail)

    def allow(self, allows: Callable[[bytes], bool] | None) -> None:
        """Other topics are allowed from now on."""
        self._allows, self._is_allowed = allows, True
        self._topic_field = self.topic = b""
        self._last_first = 0

    def scan(self, chunk: bytes) -> bytes:
        """The bytes that are whole packets; those before a problem are still good."""
        if self._is_like_the_last(chunk):
            self.kinds, self.publishes, self.packets = 1 << _PUBLISH, 1, 1
            self.cost = 1 + (len(chunk) >> _CREDIT_BYTES_SHIFT)
            self.acknowledged = self.confirmed = self.topics = self.pings = self.refused = 0
            self.expecting = 1 if chunk[0] & 6 == 2 else 0
            if chunk[0] & 6 == 4:
                self.kinds |= QOS_2
            return chunk
        self.kinds = self.publishes = self.cost = self.acknowledged = self.topics = self.pings = self.packets = 0
        self.refused = self.expecting = self.confirmed = 0
        if self.problem:
            return b""
        data = chunk
        if self._tail:
            self._tail += chunk
            if len(self._tail) < self._needed:
                return b""
            data = bytes(self._tail)
            self._tail.clear()
        position, size = 0, len(data)
        while position < size:
            end = self._take(data, position, size)
            if end == 0:
                return data[:position]
            position = end
        return data

    def _is_like_the_last(self, chunk: bytes) -> bool:
        """Whether this is one whole publish with the flags and the topic of the publish before, as nearly all are."""
        size, first = len(chunk), self._last_first
        if first == 0 or size < self._last_bytes_min or chunk[0] != first or self._tail or self.problem:
            return False
        body, length = 2, chunk[1]
        if length >= 0x80:
            body, length = 3, (length & 0x7F) | chunk[2] << 7
            if chunk[2] >= 0x80:
                return False
        after = body + len(self._topic_field)
        if length + body != size or size > self._packet_bytes_max or chunk[body:after] != self._topic_field:
            return False
        return first & 6 == 0 or chunk[after] != 0 or chunk[after + 1] != 0

    def _take(self, data: bytes, position: int, size: int) -> int:
        """Where the packet at a position ends; 0 where none does: it is unfinished, or there is a problem."""
        first = data[position]
        if position + 1 < size and data[position + 1] < 0x80:
            body = position + 2
            end = body + data[position + 1]
        else:
            header, total = frame_size(data, position)
            body, end = position + header, position + total
            if header <= 0:
                # How long it is is not known yet, but whether it can be anything is.
                body, end = 0, size + 1
                if header < 0 and first >> 4 != _RESERVED:
                    self._fail("not MQTT", _MALFORMED)
                    return 0
        kind = first >> 4
        if kind == _RESERVED:
            self._fail("not MQTT", _PROTOCOL_ERROR)
        elif kind == _AUTH and self._version < 5:
            self._fail("not MQTT", _MALFORMED)
        elif end - position > self._packet_bytes_max:
            self._fail("packet too large", _TOO_LARGE)
        if self.problem:
            return 0
        if end > size:
            self._needed = end - position
            self._tail += data[position:]
            return 0
        return end if self._count(data, position, body, end) else 0

    def _count(self, data: bytes, position: int, body: int, end: int) -> bool:
        """Whether a whole packet is in order; if so it is counted."""
        first = data[position]
        kind = first >> 4
        if self._from_device and (self.packets >= _PACKETS_MAX or (kind == _PINGREQ and self.pings >= _PINGS_MAX)):
            return self._fail("too many packets at once", _RATE_TOO_HIGH)
        if kind == _PUBLISH:
            if self._from_device:
                if not self._judge_publish(data, first, body, end):
                    return False
            elif self._allows is not None and not self._hear_publish(data, body, end):
                return False
            self.publishes += 1
            if first & 6 == 2:
                self.expecting += 1
            elif first & 6:
                self.kinds |= QOS_2
            self.cost += 1 + ((end - position) >> _CREDIT_BYTES_SHIFT)
        else:
            if self._from_device and not self._judge(data, first, body, end):
                return False
            self.pings += kind == _PINGREQ
            if kind == _PUBACK:
                self.acknowledged += 1
                self.confirmed += 1
            elif kind == _PUBCOMP:
                self.acknowledged += 1
        self.kinds |= 1 << kind
        self.packets += 1
        return True

    def _judge_publish(self, data: bytes, first: int, body: int, end: int) -> bool:  # noqa: PLR0911
        qos = first >> 1 & 3
        if self._ended or qos == 3 or (qos == 0 and first & 8) or end - body < 2:
            return self._fail("malformed packet", _MALFORMED)
        field = self._topic_field
        if field and data.startswith(field, body, end):
            after = body + len(field)
        else:
            after = body + 2 + (data[body] << 8 | data[body + 1])
            if after > end or not self._judge_topic(data[body + 2 : after]):
                return self._fail("malformed packet", _MALFORMED) if not self.problem else False
            self.topics += 1
            self._topic_field = data[body:after] if after > body + 2 else b""
            self.topic = data[body + 2 : after]
            if not self.topic:
                self.uses_aliases = True
            # What an alias stands for was asked for when it was said.
            self._is_allowed = self._allows is None or not self.topic or self._allows(self.topic)
        if not self._is_allowed:
            self.refused += 1
            if self._version < 5:
                return self._fail("not its own topic", _NOT_AUTHORISED)
        if qos:
            if after + 2 > end:
                return self._fail("malformed packet", _MALFORMED)
            if data[after] == 0 and data[after + 1] == 0:
                return self._fail("protocol error", _PROTOCOL_ERROR)
            after += 2
        if self._version >= 5:
            return self._judge_properties(data, after, end)
        self._last_first = first
        self._last_bytes_min = 5 + len(self._topic_field)
        return True

    def _hear_publish(self, data: bytes, body: int, end: int) -> bool:
        """A broker's publish: whether it has a topic at all; one that is not for this client is counted."""
        field = self._topic_field
        if not field or not data.startswith(field, body, end):
            if end - body < 2:
                return self._fail("malformed packet", _MALFORMED)
            after = body + 2 + (data[body] << 8 | data[body + 1])
            if after > end:
                return self._fail("malformed packet", _MALFORMED)
            self._topic_field = data[body:after] if after > body + 2 else b""
            self.topic = data[body + 2 : after]
            self._is_allowed = self._allows is None or not self.topic or self._allows(self.topic)
        if not self._is_allowed:
            self.refused += 1
        return True

    def _judge_properties(self, data: bytes, place: int, end: int) -> bool:
        if place < end and data[place] == 0:
            return True
        count = count_properties(data, place, end)
        if count < 0:
            return self._fail("malformed packet", _MALFORMED)
        if count > self._properties_max:
            return self._fail("too many properties", _QUOTA_EXCEEDED)
        return True

    def _judge_topic(self, topic: bytes) -> bool:
        """Whether it is a topic to publish on. In MQTT 5 an empty one may stand for an alias."""
        if not topic:
            return self._version >= 5 or self._fail("malformed topic", _TOPIC_INVALID)
        if len(topic) > self._topic_bytes_max:
            return self._fail("topic too long", _TOPIC_INVALID)
        if len(topic.translate(None, _SPECIAL)) != len(topic) and not self._judge_special(topic):
            return False
        if topic == self._forbidden:
            return self._fail("forged advice", _NOT_AUTHORISED)
        try:
            topic.decode()
        except UnicodeDecodeError:
            return self._fail("malformed topic", _MALFORMED)
        return True

    def _judge_special(self, topic: bytes) -> bool:
        if b"\0" in topic:
            return self._fail("malformed topic", _MALFORMED)
        if b"+" in topic or b"#" in topic:
            return self._fail("malformed topic", _TOPIC_INVALID)
        if has_wildcard_level(topic):
            return self._fail("wildcard as a topic level", _TOPIC_INVALID)
        return True

    def _judge(self, data: bytes, first: int, body: int, end: int) -> bool:
        """Any packet of a device but PUBLISH."""
        kind, flags = first >> 4, first & 0x0F
        if self._ended or 1 << kind & _BROKERS_ALONE:
            return self._fail("protocol error", _PROTOCOL_ERROR)
        # PUBREL, SUBSCRIBE and UNSUBSCRIBE have the flags 0010. MQTT 3.1 allows a duplicate and a QoS there.
        has_flag = kind in (_PUBREL, _SUBSCRIBE, _UNSUBSCRIBE)
        if flags != (2 if has_flag else 0) and not (self._version == 3 and has_flag):
            return self._fail("malformed packet", _MALFORMED)
        size = end - body
        if kind == _PINGREQ:
            if size:
                return self._fail("malformed packet", _MALFORMED)
        elif kind == _DISCONNECT:
            if size and self._version < 5:
                return self._fail("malformed packet", _MALFORMED)
            self._ended = True
            self._last_first = 0
        elif kind != _AUTH:
            return self._judge_identifier(data, body, size, kind in (_SUBSCRIBE, _UNSUBSCRIBE))
        return True

    def _judge_identifier(self, data: bytes, body: int, size: int, names_filters: bool) -> bool:
        """Brokers call an identifier of 0 malformed where filters follow it, and a protocol error elsewhere."""
        if size < 2 or (size > 2 and not names_filters and self._version < 5):
            return self._fail("malformed packet", _MALFORMED)
        if data[body] or data[body + 1]:
            return True
        if names_filters:
            return self._fail("malformed packet", _MALFORMED)
        return self._fail("protocol error", _PROTOCOL_ERROR)

    def _fail(self, problem: str, code: int) -> bool:
        self.problem, self.code = problem, code
        return False
