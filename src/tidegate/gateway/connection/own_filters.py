"""Filters in a device's subscriptions that no broker sees: of the advice topic, and of those that it has no right to.

They are taken out of SUBSCRIBE and UNSUBSCRIBE, and their codes put back into the broker's answer at their places.
Where nothing else was asked for, the gateway answers itself. Topics that begin with ``$`` are the broker's own: what it
keeps of other clients' sessions and messages may be among them.
"""

import msgspec

from tidegate.gateway.connection.subscribing import UNANSWERED_MAX
from tidegate.gateway.identity.rights import Rights
from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import packets
from tidegate.mqtt.names import is_shared
from tidegate.mqtt.violations import NOT_AUTHORIZED

_FILTER = ADVICE_TOPIC.encode()
_GRANTED = 0
_REFUSED, _REFUSED_BEFORE_5 = NOT_AUTHORIZED, 0x80


class OwnFilters:
    """``subscribed`` says whether the device asks for advice now."""

    def __init__(self, version: int, rights: Rights) -> None:
        self.subscribed = False
        self.problem = ""
        self.rights = rights
        self.passed: packets.Subscribe | None = None  # what is left for the broker of the last SUBSCRIBE
        self._version = version
        # Where the filters stood, and the code of each, by packet identifier.
        self._places: dict[int, tuple[tuple[int, int], ...]] = {}

    @property
    def expects(self) -> bool:
        return bool(self._places)

    def taken_out(self, packet: packets.Packet) -> tuple[bytes, bytes] | None:
        """(what goes to the broker, what the device is answered); None where the packet passes as it came."""
        self.passed = None
        if isinstance(packet, packets.Subscribe):
            codes_here = [self._code(topic) for topic, _ in packet.entries]
            places = tuple((place, code) for place, code in enumerate(codes_here) if code is not None)
            entries = tuple(entry for entry, code in zip(packet.entries, codes_here, strict=True) if code is None)
            asks = any(topic == _FILTER for topic, _ in packet.entries)
            has_rest = bool(entries)
            forward: packets.Packet = msgspec.structs.replace(packet, entries=entries)
            if has_rest and isinstance(forward, packets.Subscribe):
                self.passed = forward
            own: packets.Packet = packets.Suback(packet_id=packet.packet_id, codes=bytes(code for _, code in places))
        else:
            assert isinstance(packet, packets.Unsubscribe)
            places = tuple((place, _GRANTED) for place, topic in enumerate(packet.filters) if topic == _FILTER)
            asks = False
            filters = tuple(topic for topic in packet.filters if topic != _FILTER)
            has_rest = bool(filters)
            forward = msgspec.structs.replace(packet, filters=filters)
            codes = bytes(len(places)) if self._version == 5 else b""
            own = packets.Unsuback(packet_id=packet.packet_id, codes=codes)
        if not places:
            return None
        is_subscribe = isinstance(packet, packets.Subscribe)
        self.subscribed = asks or (self.subscribed and is_subscribe)
        if not has_rest:
            return b"", packets.encode(own, self._version)
        if is_subscribe or self._version == 5:
            self._expect(packet.packet_id, places)
        return packets.encode(forward, self._version), b""

    def put_back(self, answer: packets.Packet, packet: bytes) -> bytes:
        """A SUBACK or UNSUBACK with a code for every filter that the device named, in its order."""
        if not isinstance(answer, packets.Suback | packets.Unsuback):
            return packet
        places = self._places.pop(answer.packet_id, ())
        codes = bytearray(answer.codes)
        for place, code in places:
            codes.insert(place, code)
        return packets.encode(msgspec.structs.replace(answer, codes=bytes(codes)), self._version) if places else packet

    def is_allowed(self, topic_filter: bytes) -> bool:
        """Whether the device may have such a subscription at the broker."""
        asked = topic_filter.split(b"/", 2)[-1] if is_shared(topic_filter) else topic_filter
        return not asked.startswith(b"$") and self.rights.may_subscribe(asked)

    def _code(self, topic_filter: bytes) -> int | None:
        """What the device is answered; None where the broker is asked."""
        if topic_filter == _FILTER:
            return _GRANTED
        if self.is_allowed(topic_filter):
            return None
        return _REFUSED if self._version == 5 else _REFUSED_BEFORE_5

    def _expect(self, packet_id: int, places: tuple[tuple[int, int], ...]) -> None:
        if len(self._places) >= UNANSWERED_MAX:
            self.problem = "too many unanswered subscriptions"
        else:
            self._places[packet_id] = places
