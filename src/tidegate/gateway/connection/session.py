"""One device's session as the gateway sees it: bytes of one side in, bytes for the other side out. No IO, no clock.

Device and broker speak the same version of MQTT here. Everything passes unchanged except:

* what concerns the advice topic, for which the gateway answers itself (``advised``);
* behind an acknowledgement to a device that asked for it, the current advice is put in, once per revision. A device
  that speaks MQTT 5 need not ask: it finds the advice as a property of the acknowledgement;
* publishes that have to wait (``passing``): they and their acknowledgements come later. Meanwhile the gateway answers
  the device's pings itself and pings the broker;
* what the device may not do by its ``rights``: publishes and subscriptions are refused. A message that it may not hear
  (a session from a time of other rights had asked for it) ends the connection, and that session with it.

``attention`` says that there is more to see to than the bytes that came back: an ``answer`` for the device, a
``problem``, or publishes that wait.
"""

import math

from tidegate.control.limiting.credits import OWN_CREDITS
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connack import capped
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.in_flight import InFlight
from tidegate.gateway.connection.noting import Noting
from tidegate.gateway.connection.own_filters import OwnFilters
from tidegate.gateway.connection.passing import Passing
from tidegate.gateway.connection.refusing import refusal_of
from tidegate.gateway.connection.subscribed import Subscribed
from tidegate.gateway.connection.telling import Telling
from tidegate.gateway.connection.translation import BROKER_PACKET_BYTES_MAX
from tidegate.gateway.identity.rights import Rights
from tidegate.gateway.shared.tally import ClassTally
from tidegate.model.advice import ADVICE_TOPIC
from tidegate.model.limits import LimitMet
from tidegate.mqtt import packets, properties
from tidegate.mqtt.client import PINGREQ
from tidegate.mqtt.frames import QOS_2, FrameScanner, count_filters, frame_size, frames_of
from tidegate.mqtt.violations import (
    MALFORMED,
    NOT_AUTHORIZED,
    PACKET_TOO_LARGE,
    QUOTA_EXCEEDED,
    UNSPECIFIED,
    Violation,
    protocol_error,
)

# Nobody who wants to know whether the gateway lives asks more often.
PINGS_PER_S_MAX = 256
RATE_TOO_HIGH = 0x96
DEAR_BYTES = 4_096
REFUSED_COST = 4.0  # credits of a publish that is refused: to say so costs more than to pass it on
FILTER_COST = 4  # credits: to read and judge a filter costs several times what a publish does
_FORBIDDEN = ADVICE_TOPIC.encode()
_PINGRESP = packets.encode(packets.Pong(), 4)  # the same in every version


def _bits(*kinds: int) -> int:
    return sum(1 << (kind >> 4) for kind in kinds)


_FILTERS = _bits(packets.SUBSCRIBE, packets.UNSUBSCRIBE)
_ACKS = _bits(packets.PUBACK, packets.PUBREC, packets.PUBREL, packets.PUBCOMP)
_SUBACKS = _bits(packets.SUBACK, packets.UNSUBACK)
_PONG = _bits(packets.PINGRESP)
# What no broker may say, and what it may not say twice.
_DEVICES_ALONE = _bits(packets.CONNECT, packets.SUBSCRIBE, packets.UNSUBSCRIBE, packets.PINGREQ)
_NOT_ANY_MORE = _DEVICES_ALONE | _bits(packets.CONNACK)
_IN_STEPS = _bits(packets.PUBREC, packets.PUBREL, packets.PUBCOMP) | QOS_2
_BEFORE_CONNACK = _bits(packets.AUTH, packets.DISCONNECT)
# Packets for which a chunk is taken apart: the gateway has a say in them, or has to look closer.
_APART = _FILTERS | _bits(packets.DISCONNECT)
_APART_V5 = _APART | _ACKS | _bits(packets.AUTH)


class Session:
    """``keep_alive_s`` and ``packet_bytes_max`` are what the device said of itself. ``news_bytes_max``: it takes advice
    as a property, on packets of at most so many bytes. ``may_be_asked``: it named a method by which the broker may ask
    it more before CONNACK. ``noting`` keeps the book on what is acknowledged, if anybody
    does.
    """

    def __init__(
        self,
        version: int,
        limits: Limits,
        advice: AdviceInForce,
        passing: Passing,
        rights: Rights,
        *,
        keep_alive_s: int = 0,
        news_bytes_max: int = 0,
        packet_bytes_max: int = BROKER_PACKET_BYTES_MAX,
        assigned_id: bytes = b"",
        may_be_asked: bool = False,
        noting: Noting | None = None,
        place: float = 0.0,
    ) -> None:
        self.problem = ""
        self.code = 0  # of the problem, as MQTT 5 says it
        self.sentence = ""  # about it, for the device
        self.answer = b""
        self.attention = False
        self.heard_s = 0.0  # when the device last said anything
        self.is_dear = False  # many packets were just looked at one by one
        self.return_code: int | None = None  # of the broker's CONNACK, once it came
        self.keep_alive_s: int | None = None  # where the broker says another than the device did
        self.speaks_older = False  # the broker does not know MQTT 5
        self.disconnected = False  # the device has said that it leaves
        self.authenticates = False  # the broker wants more than CONNECT
        self.may_not_stay = False  # the session at the broker has what the device may not have
        self.passing = passing
        self.in_flight = InFlight()
        self.subscribed = Subscribed()
        self._rights = rights
        self._assigned_id = assigned_id
        self._may_be_asked = may_be_asked
        self._version = version
        self._limits = limits
        self._noting = noting
        self._telling = Telling(version, advice, passing.counters.tally, place, packet_bytes_max, news_bytes_max)
        self._tally = passing.counters.tally
        self._asked_keep_alive_s = keep_alive_s
        self._own_class: ClassTally | None = None  # once it has published
        self._device_frames = FrameScanner(
            limits.packet_bytes_max,
            limits.topic_bytes_max,
            version,
            True,
            limits.properties_max,
            _FORBIDDEN,
            rights.may_publish,
        )
        self._broker_frames = FrameScanner(BROKER_PACKET_BYTES_MAX, version=version, allows=rights.may_subscribe)
        self._apart = _APART_V5 if version == 5 else _APART
        self._filters = OwnFilters(version, rights)
        self._own_pings = 0  # that the broker has not answered
        self._pings = 0  # of the device, since the last look
        self._taken = 0  # messages that the device had acknowledged when it was last looked at, and when that was more
        self._taken_s = math.inf

    # -- from the device

    def from_device(self, chunk: bytes, now_s: float) -> bytes:
        """What goes to the broker now."""
        scanner, passing = self._device_frames, self.passing
        self.heard_s = now_s
        data = scanner.scan(chunk)
        self._tally.bytes_in += len(chunk)
        publishes = scanner.publishes
        if publishes and self._own_class is None:
            self._join_class(data)
        if scanner.problem:
            self._fail(scanner.problem, scanner.code)
        if scanner.pings:
            self._count_pings(scanner.pings)
        kinds = scanner.kinds
        if kinds & self._apart or scanner.refused or passing.hold.waiting or not passing.passes(scanner, now_s):
            return self._taken_apart(data, now_s)
        in_flight = self.in_flight
        in_flight.up += scanner.expecting
        if scanner.confirmed:
            in_flight.counted(0, scanner.confirmed)
        if kinds & _IN_STEPS:
            in_flight.follow_up(data)
        if in_flight.strays:
            self._pay_strays(now_s)
        if publishes:
            self._count(publishes)
            if self._noting is not None:
                self._noting.sent(data)
        return data

    def from_device_early(self, chunk: bytes) -> bytes:
        """Before the broker has answered CONNECT: only what belongs to the broker's questions may come."""
        scanner = self._device_frames
        data = scanner.scan(chunk)
        self._tally.bytes_in += len(chunk)
        if scanner.problem:
            self._fail(scanner.problem, scanner.code)
        elif scanner.kinds & ~_BEFORE_CONNACK:
            self._fail("protocol error", protocol_error("before CONNACK").code)
            return b""
        return data

    def own_up(self, data: bytes) -> bytes:
        """Acknowledgements that the gateway gives the broker in the device's place."""
        self.in_flight.sent_up(data)
        return data

    def renew_rights(self, rights: Rights) -> bool:
        """Other rights from now on. Whether what is subscribed, and what waits, is still among them."""
        if rights.is_like(self._rights):
            return True
        self._rights = rights
        if self._device_frames.uses_aliases:
            return False  # what its aliases stand for was allowed before
        self._device_frames.allow(rights.may_publish)
        self._broker_frames.allow(rights.may_subscribe)
        self._filters.rights = rights
        waiting = [packets.text_at(packet, frame_size(packet, 0)[0]) for packet in self.passing.hold.publishes()]
        if not all(rights.may_publish(topic) for topic in waiting if topic):
            return False
        return all(self._filters.is_allowed(name) for name in self.subscribed.filters())

    def unacknowledged_s(self, now_s: float) -> float:
        """Since when the device has acknowledged nothing although it was sent something; asked now and then."""
        done, waits = self.in_flight.ended_down, self.in_flight.waits_for_device
        if not waits or done != self._taken or self._taken_s == math.inf:
            self._taken, self._taken_s = done, now_s
        return now_s - self._taken_s

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way in either direction, nothing waits, and every question is answered."""
        is_settled = self.subscribed.is_settled and not self._filters.expects and not self._own_pings
        return is_settled and self.in_flight.is_none and not self.passing.hold.waiting

    def released(self, now_s: float) -> bytes:
        """What has waited long enough to go to the broker."""
        released = self.passing.release(now_s)
        self.answer += self.passing.take_answer()
        self._count(sum(packet[0] & 0xF0 == packets.PUBLISH for packet in released))
        data = b"".join(released)
        self.in_flight.sent_up(data)
        if self._noting is not None:
            self._noting.sent(data)
        return data

    def ping(self) -> bytes:
        """A ping of the gateway's own: the broker must not take a device for dead whose publishes wait here."""
        self._own_pings += 1
        return PINGREQ

    def look(self) -> None:
        """Once a second: what a device may do so often in a second begins anew."""
        self._pings = 0

    def _count_pings(self, pings: int) -> None:
        self._pings += pings
        if self._pings > PINGS_PER_S_MAX:
            self._fail("too many pings", RATE_TOO_HIGH)

    def leave(self) -> None:
        """The device is gone: its class has one less."""
        if self._own_class is not None:
            self._own_class.devices -= 1
            self._own_class = None

    def forget(self) -> None:
        """Nothing of the device is on its way any more."""
        if self._noting is not None:
            self._noting.leave()

    def take_answer(self) -> bytes:
        """What the gateway itself tells the device."""
        answer, self.answer = self.answer, b""
        self._tally.bytes_out += len(answer)
        return answer

    def _taken_apart(self, data: bytes, now_s: float) -> bytes:
        parts, start, passing, publishes = [], 0, self.passing, 0
        self.is_dear = len(data) > DEAR_BYTES
        for first, body, end in frames_of(data):
            packet, kind = data[start:end], first & 0xF0
            start = end
            if self.problem and kind != packets.PUBLISH:
                continue  # what came whole before the fault was still said, but nothing is promised any more
            if kind == packets.PUBLISH:
                packet = self._published(packet, body - end + len(packet), now_s)
                publishes += bool(packet)
            elif passing.hold.waiting and kind == packets.PINGREQ:
                self.answer += _PINGRESP
                packet = b""
            elif kind != packets.PINGREQ:
                packet = self._judged(kind, first, packet, data[body:end], now_s)
            parts.append(packet)
        forward = b"".join(parts)
        self.in_flight.sent_up(forward)
        if self.in_flight.strays:
            self._pay_strays(now_s)
        if publishes:
            self._count(publishes)
            if self._noting is not None:
                self._noting.sent(forward)
        self.answer += passing.take_answer()
        if passing.hold.waiting and self._telling.is_due(now_s):
            self.answer += self._telling.meet(passing.hold.met(now_s), now_s)
        self.attention = bool(self.attention or self.answer or passing.hold.waiting)
        return forward

    def _published(self, packet: bytes, body: int, now_s: float) -> bytes:
        """One publish of a chunk that is taken apart, as it goes to the broker."""
        topic = packets.text_at(packet, body)
        if not topic or self._rights.may_publish(topic):
            return self.passing.publish(packet, body, now_s)
        # Only MQTT 5 comes here: before it a publish that may not pass is a problem.
        if not self.pay(REFUSED_COST, now_s):
            return b""
        answer = refusal_of(packet, body, self._telling.news_bytes_max)
        if answer is None:
            self._fail("not its own topic", NOT_AUTHORIZED)
        else:
            self.passing.counters.drop("not its own topic")
            self.answer += answer
        return b""

    def _judged(self, kind: int, first: int, packet: bytes, body: bytes, now_s: float) -> bytes:
        """A packet other than PUBLISH and PINGREQ, as it goes to the broker; empty where it does not, or not yet."""
        if kind in (packets.SUBSCRIBE, packets.UNSUBSCRIBE):
            if not self._pays_filters(kind, body, now_s):
                return b""
            try:
                return self._without_own_filters(self._parsed(first, body), packet)
            except Violation as violation:
                self._fail("malformed SUBSCRIBE or UNSUBSCRIBE", violation.code)
                return b""
        if self._version == 5 and len(body) > 2:
            try:
                self._parsed(first, body)
            except Violation as violation:
                self._fail("malformed packet" if violation.code == MALFORMED else "protocol error", violation.code)
                return b""
        if kind == packets.DISCONNECT:
            self.disconnected = True
            if self.passing.hold.waiting:
                self.passing.hold.push_control(packet, now_s)
                return b""
        return packet

    def _parsed(self, first: int, body: bytes) -> packets.Packet:
        return packets.parse(first, body, self._version, properties_max=self._limits.properties_max)

    def _pay_strays(self, now_s: float) -> None:
        """Acknowledgements of what was never sent: a few may come with a session of before, a flood is an attack."""
        strays, self.in_flight.strays = self.in_flight.strays, 0
        self.pay(float(strays), now_s)

    def pay(self, cost: float, now_s: float) -> bool:
        """Whether the device can pay for what is no publish that passes; one that cannot is closed."""
        credits_now = self.passing.hold.credits
        if credits_now.take(0, cost, now_s):
            return True
        left, per_s = credits_now.left(cost, now_s)
        until_s = credits_now.wait_s(cost, now_s)
        self.sentence = LimitMet(limit=OWN_CREDITS, left=left, until_s=until_s, rate_per_s=per_s).sentence()
        self._fail("quota exceeded", QUOTA_EXCEEDED)
        return False

    def _pays_filters(self, kind: int, body: bytes, now_s: float) -> bool:
        """Whether a SUBSCRIBE or UNSUBSCRIBE may be read: it has no more filters than one may have, and they are paid
        for. One that is malformed costs nothing more: it is the last that is read."""
        count = count_filters(body, self._version, kind == packets.SUBSCRIBE)
        if count > self._limits.filters_max or len(body) > self._limits.filters_bytes_max:
            self._fail("SUBSCRIBE too large", PACKET_TOO_LARGE)
            return False
        return self.pay(float(FILTER_COST * max(1, count)), now_s)

    def _without_own_filters(self, packet: packets.Packet, as_it_came: bytes) -> bytes:
        subscribed = self._filters.subscribed
        if isinstance(packet, packets.Unsubscribe):
            self.subscribed.gone(packet)
        found = self._filters.taken_out(packet)
        if found is None:
            if isinstance(packet, packets.Subscribe):
                self.subscribed.asked(packet)
            return as_it_came
        if isinstance(packet, packets.Subscribe) and self._filters.passed is not None:
            self.subscribed.asked(self._filters.passed)
        if self._filters.problem:
            self._fail(self._filters.problem, QUOTA_EXCEEDED)
        if self._filters.subscribed != subscribed or (
            self._filters.subscribed and isinstance(packet, packets.Subscribe)
        ):
            self._telling.subscribed(self._filters.subscribed)
        forward, answer = found
        self.answer += answer
        return forward

    def _join_class(self, data: bytes) -> None:
        """A device is of the class of its first publish, whatever it publishes later."""
        body, end = next((body, end) for first, body, end in frames_of(data) if first & 0xF0 == packets.PUBLISH)
        self._own_class = self.passing.join(packets.text_at(data[body:end], 0) or b"")
        self._own_class.devices += 1

    def _count(self, publishes: int) -> None:
        """Publishes go on to the broker. What waits has not arrived yet."""
        self._tally.publishes += publishes
        if self._own_class is not None:
            self._own_class.publishes += publishes

    # -- from the broker

    def from_broker(self, chunk: bytes) -> bytes:
        """What goes to the device."""
        scanner, tally, telling = self._broker_frames, self._tally, self._telling
        is_first = self.return_code is None
        data = scanner.scan(chunk)
        if is_first and data:
            data = self._connected(data)
        acknowledged, kinds = scanner.acknowledged, scanner.kinds
        tally.acknowledged += acknowledged
        if scanner.expecting or scanner.confirmed:
            self.in_flight.counted_down(scanner.expecting, scanner.confirmed)
        if kinds & _IN_STEPS:
            self.in_flight.follow_down(data)
        if kinds & (_DEVICES_ALONE if is_first else _NOT_ANY_MORE):
            self._fail("broken by the broker", UNSPECIFIED)
            return b""
        if scanner.refused:
            self.may_not_stay = True
            self._fail("not for it to hear", NOT_AUTHORIZED)
            return _up_to_connack(data) if is_first else b""
        if acknowledged and self._noting is not None:
            self._noting.acknowledged(data)
        if kinds & _SUBACKS:
            data = self._with_own_codes(data)
        if kinds & _PONG and self._own_pings:
            data = self._without_own_pongs(data)
        if (acknowledged or kinds & _PONG) and telling.has_news:
            data = telling.with_news(data)
            if telling.is_broken:
                self._fail("broken by the broker", UNSPECIFIED)
        if scanner.problem:
            self._fail("broken by the broker", UNSPECIFIED)
        tally.bytes_out += len(data)
        return data

    def news(self) -> bytes:
        """For a translation: the document about advice and limits, if there is anything to tell."""
        return self._telling.news()

    def _connected(self, data: bytes) -> bytes:
        """What comes before the broker has answered: CONNACK, and in MQTT 5 questions before it."""
        start = 0
        for first, _, end in frames_of(data):
            if not self._may_be_asked or first & 0xF0 != packets.AUTH:
                return data[:start] + self._answered(data[start:])
            self.authenticates, start = True, end
        return data

    def _answered(self, data: bytes) -> bytes:
        first, body, end = frames_of(data)[0]
        if self._version == 5 and end - body == 2:
            self.speaks_older, self.return_code = True, data[body + 1]
            return data
        try:
            answer = packets.parse(first, data[body:end], self._version, properties_max=65_535)
        except Violation:
            answer = None
        if not isinstance(answer, packets.Connack):
            self._fail("broken by the broker", UNSPECIFIED)
            return b""
        self.return_code = answer.code
        self.subscribed.began(answer.session_present)
        if self._version < 5 or answer.code:
            return data
        self.passing.allow_aliases(answer.properties.number(properties.TOPIC_ALIAS_MAX, 0))
        told = capped(answer, self._limits, self._asked_keep_alive_s, self._assigned_id)
        self.keep_alive_s = told.properties.optional_number(properties.SERVER_KEEP_ALIVE)
        return data if told is answer else packets.encode(told, 5) + data[end:]

    def _with_own_codes(self, data: bytes) -> bytes:
        parts, start = [], 0
        for first, body, end in frames_of(data):
            packet = data[start:end]
            start = end
            if first & 0xF0 in (packets.SUBACK, packets.UNSUBACK):
                packet = self._suback(first, packet, data[body:end])
            parts.append(packet)
        return b"".join(parts)

    def _suback(self, first: int, packet: bytes, body: bytes) -> bytes:
        try:
            answer = packets.parse(first, body, self._version, properties_max=65_535)
        except Violation:
            return packet  # the device's to judge
        if isinstance(answer, packets.Suback):
            self.subscribed.answered(answer)
        return self._filters.put_back(answer, packet)

    def _without_own_pongs(self, data: bytes) -> bytes:
        parts, start = [], 0
        for first, _, end in frames_of(data):
            if first & 0xF0 == packets.PINGRESP and self._own_pings:
                self._own_pings -= 1
            else:
                parts.append(data[start:end])
            start = end
        return b"".join(parts)

    def _fail(self, problem: str, code: int) -> None:
        if not self.problem:
            self.problem, self.code = problem, code
        self.attention = True


def _up_to_connack(data: bytes) -> bytes:
    """What a client has to hear before it can be told anything else."""
    return data[: next((end for first, _, end in frames_of(data) if first & 0xF0 == packets.CONNACK), 0)]
