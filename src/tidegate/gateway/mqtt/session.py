"""One device's session as the gateway sees it: bytes of one side in, bytes for the other side out. No IO, no clock.

Everything passes unchanged except what concerns the advice topic, for which the gateway answers itself:

* its filter is taken out of SUBSCRIBE and UNSUBSCRIBE, and its return code put back into the SUBACK;
* behind an acknowledgement to a device that asked for it, the current advice is put in, once per revision;
* a device that publishes there forges advice: its connection ends.
"""

from tidegate.gateway.advising import AdviceInForce
from tidegate.gateway.classes import ClassCount, Classes
from tidegate.gateway.counting import Counters
from tidegate.gateway.mqtt import packets
from tidegate.gateway.mqtt.frames import Frame, FrameScanner
from tidegate.model.advice import ADVICE_TOPIC

UNANSWERED_MAX = 64
_ADVICE_FILTER = ADVICE_TOPIC.encode()
_FORGED = len(_ADVICE_FILTER).to_bytes(2, "big") + _ADVICE_FILTER
# A broker passes on what other clients were allowed to send, perhaps not through a gateway.
_BROKER_PACKET_BYTES_MAX = 16 * 1024**2


class Session:
    """``problem`` says why the connection must end; ``answer`` is what the gateway itself tells the device."""

    def __init__(self, packet_bytes_max: int, advice: AdviceInForce, counters: Counters, classes: Classes) -> None:
        self.problem = ""
        self.answer = b""
        self.return_code: int | None = None  # of the broker's CONNACK, once it came
        self._advice = advice
        self._counters = counters
        self._classes = classes
        self._own_class: ClassCount | None = None  # once it has published
        self._device_frames = FrameScanner(packet_bytes_max)
        self._broker_frames = FrameScanner(_BROKER_PACKET_BYTES_MAX)
        self._advised = False
        self._revision = 0  # of the advice this device was sent last
        self._subscribing: dict[bytes, tuple[int, ...]] = {}

    def from_device(self, chunk: bytes) -> bytes:
        """What goes to the broker."""
        scanner, counters = self._device_frames, self._counters
        data, frames = scanner.scan(chunk)
        counters.bytes_in += len(chunk)
        publishes, concerns_filters = 0, False
        for first, body, end in frames:
            kind = first & 0xF0
            if kind == packets.PUBLISH:
                if data.startswith(_FORGED, body, end):
                    self.problem = "forged advice"
                    return b""
                publishes += 1
            elif kind in (packets.SUBSCRIBE, packets.UNSUBSCRIBE):
                concerns_filters = True
        if publishes:
            counters.publishes += publishes
            own = self._own_class or self._join_class(data, frames)
            own.publishes += publishes
        if scanner.problem:
            self.problem = scanner.problem
        return self._without_advice_filter(data, frames) if concerns_filters else data

    def from_broker(self, chunk: bytes) -> bytes:
        """What goes to the device."""
        scanner, counters = self._broker_frames, self._counters
        data, frames = scanner.scan(chunk)
        if self.return_code is None and frames:
            self._connected(data, frames[0])
        acknowledged, answered, concerns_filters = 0, False, False
        for first, _, _ in frames:
            kind = first & 0xF0
            if kind in (packets.PUBACK, packets.PUBCOMP):
                acknowledged += 1
            elif kind == packets.PINGRESP:
                answered = True
            elif kind == packets.SUBACK:
                concerns_filters = True
        counters.acknowledged += acknowledged
        if concerns_filters and self._subscribing:
            data = self._with_advice_code(data, frames)
        if self._advised and self._revision != self._advice.revision and (acknowledged or answered):
            data += self._advise()
        if scanner.problem:
            self.problem = "broken by the broker"
        counters.bytes_out += len(data)
        return data

    def take_answer(self) -> bytes:
        answer, self.answer = self.answer, b""
        self._counters.bytes_out += len(answer)
        return answer

    def leave(self) -> None:
        """The device is gone: its class has one less."""
        if self._own_class is not None:
            self._own_class.devices -= 1
            self._own_class = None

    def _join_class(self, data: bytes, frames: list[Frame]) -> ClassCount:
        """A device is of the class of its first publish, whatever it publishes later."""
        body, end = next((body, end) for first, body, end in frames if first & 0xF0 == packets.PUBLISH)
        own = self._own_class = self._classes.of(packets.text_at(data[body:end], 0) or b"")
        own.devices += 1
        return own

    def _connected(self, data: bytes, frame: Frame) -> None:
        first, body, end = frame
        if first != packets.CONNACK or end - body != 2:
            self.problem = "broken by the broker"
        else:
            self.return_code = data[body + 1]

    def _advise(self) -> bytes:
        packet = self._advice.packet()
        # A lapsed advice has revision 0: nothing is sent, and nothing is remembered as sent.
        self._revision = self._advice.revision
        self._counters.advised += bool(packet)
        return packet

    def _without_advice_filter(self, data: bytes, frames: list[Frame]) -> bytes:
        parts, start = [], 0
        for first, body, end in frames:
            if first & 0xF0 in (packets.SUBSCRIBE, packets.UNSUBSCRIBE):
                parts.append(self._filters_for_broker(first, data[start:end], data[body:end]))
            else:
                parts.append(data[start:end])
            start = end
        return b"".join(parts)

    def _filters_for_broker(self, first: int, packet: bytes, body: bytes) -> bytes:
        """The packet without the advice filter; empty where nothing else was in it: then the gateway answers."""
        filters = packets.parse_filters(first, body)
        if filters is None:
            self.problem = "malformed SUBSCRIBE or UNSUBSCRIBE"
            return b""
        places = tuple(index for index, (topic, _) in enumerate(filters.entries) if topic == _ADVICE_FILTER)
        if not places:
            return packet
        subscribes = first & 0xF0 == packets.SUBSCRIBE
        self._advised, self._revision = subscribes, 0
        rest = [entry for entry in filters.entries if entry[0] != _ADVICE_FILTER]
        if rest:
            if subscribes:
                self._expect(filters.packet_id, places)
            return packets.encode_filters(first, filters.packet_id, rest)
        if subscribes:
            self.answer += packets.encode_suback(filters.packet_id, bytes(len(places)))
        else:
            self.answer += packets.encode_unsuback(filters.packet_id)
        return b""

    def _expect(self, packet_id: bytes, places: tuple[int, ...]) -> None:
        if len(self._subscribing) >= UNANSWERED_MAX:
            self.problem = "too many unanswered subscriptions"
        else:
            self._subscribing[packet_id] = places

    def _with_advice_code(self, data: bytes, frames: list[Frame]) -> bytes:
        """Each SUBACK with a code for every filter the device named, in its order."""
        parts, start = [], 0
        for first, body, end in frames:
            packet_id = data[body : body + 2]
            if first & 0xF0 == packets.SUBACK and packet_id in self._subscribing:
                codes = bytearray(data[body + 2 : end])
                for place in self._subscribing.pop(packet_id):
                    codes.insert(place, 0)
                parts.append(packets.encode_suback(packet_id, bytes(codes)))
            else:
                parts.append(data[start:end])
            start = end
        return b"".join(parts)
