"""The advice topic in a device's subscriptions: no broker ever sees its filter, and the device notices nothing of that.

The filter is taken out of SUBSCRIBE and UNSUBSCRIBE, and its code put back into the broker's answer at its place. Where
nothing else was asked for, the gateway answers itself.
"""

import msgspec

from tidegate.gateway.connection.subscribing import UNANSWERED_MAX
from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import packets
from tidegate.mqtt.violations import Violation

_FILTER = ADVICE_TOPIC.encode()
_GRANTED = 0
_PROPERTIES_MAX = 65_535  # of a broker: it is trusted with what it adds


class AdviceFilters:
    """``subscribed`` says whether the device asks for advice now."""

    def __init__(self, version: int) -> None:
        self.subscribed = False
        self.problem = ""
        self._version = version
        self._places: dict[int, tuple[int, ...]] = {}  # where the filter stood, by packet identifier

    @property
    def expects(self) -> bool:
        return bool(self._places)

    def taken_out(self, packet: packets.Packet) -> tuple[bytes, bytes] | None:
        """(what goes to the broker, what the device is answered); None where the packet passes as it came."""
        if isinstance(packet, packets.Subscribe):
            places = tuple(place for place, (topic, _) in enumerate(packet.entries) if topic == _FILTER)
            entries = tuple(entry for entry in packet.entries if entry[0] != _FILTER)
            has_rest = bool(entries)
            forward: packets.Packet = msgspec.structs.replace(packet, entries=entries)
            own: packets.Packet = packets.Suback(packet_id=packet.packet_id, codes=bytes((_GRANTED,) * len(places)))
        else:
            assert isinstance(packet, packets.Unsubscribe)
            places = tuple(place for place, topic in enumerate(packet.filters) if topic == _FILTER)
            filters = tuple(topic for topic in packet.filters if topic != _FILTER)
            has_rest = bool(filters)
            forward = msgspec.structs.replace(packet, filters=filters)
            codes = bytes(len(places)) if self._version == 5 else b""
            own = packets.Unsuback(packet_id=packet.packet_id, codes=codes)
        if not places:
            return None
        self.subscribed = isinstance(packet, packets.Subscribe)
        if not has_rest:
            return b"", packets.encode(own, self._version)
        if self.subscribed or self._version == 5:
            self._expect(packet.packet_id, places)
        return packets.encode(forward, self._version), b""

    def put_back(self, first: int, packet: bytes, body: bytes) -> bytes:
        """A SUBACK or UNSUBACK with a code for every filter that the device named, in its order."""
        try:
            answer = packets.parse(first, body, self._version, properties_max=_PROPERTIES_MAX)
        except Violation:
            return packet  # the device's to judge
        assert isinstance(answer, packets.Suback | packets.Unsuback)
        places = self._places.pop(answer.packet_id, ())
        codes = bytearray(answer.codes)
        for place in places:
            codes.insert(place, _GRANTED)
        return packets.encode(msgspec.structs.replace(answer, codes=bytes(codes)), self._version) if places else packet

    def _expect(self, packet_id: int, places: tuple[int, ...]) -> None:
        if len(self._places) >= UNANSWERED_MAX:
            self.problem = "too many unanswered subscriptions"
        else:
            self._places[packet_id] = places
