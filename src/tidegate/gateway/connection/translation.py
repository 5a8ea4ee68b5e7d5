"""An MQTT 5 client on a 3.1.1 broker: bytes of one version in, bytes of the other out. No IO, no clock.

It stands between the device and everything behind it, which sees a 3.1.1 client. Both directions may be cut anywhere.
What 3.1.1 has no word for is dropped, or answered here, or ends the connection with the code that MQTT 5 has for it;
docs/mqtt5.md lists all of it.
"""

from collections.abc import Callable

from tidegate.gateway.connection.aliases import TopicAliases
from tidegate.gateway.connection.connect_plan import ConnectPlan, Limits, connack_for, refusal_for
from tidegate.gateway.connection.delivery import Delivery
from tidegate.gateway.connection.receive_window import ReceiveWindow
from tidegate.gateway.connection.refusing import refusal
from tidegate.gateway.connection.subscribing import Subscriptions
from tidegate.gateway.identity.rights import Rights
from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import packets, properties
from tidegate.mqtt.acknowledgements import with_user_property
from tidegate.mqtt.client import DISCONNECT
from tidegate.mqtt.frames import FrameScanner, count_filters, frames_of
from tidegate.mqtt.packets import (
    Ack,
    Connack,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    encode,
    parse,
)
from tidegate.mqtt.rules import Sender, check_content
from tidegate.mqtt.violations import PACKET_TOO_LARGE, UNSPECIFIED, Violation, protocol_error

ADVICE_PROPERTY = b"tidegate-advice"
_ADVICE = ADVICE_TOPIC.encode()  # who forges that is closed by the session behind
_BROKEN = "broken by the broker"
# A broker passes on what other clients were allowed to send, perhaps not through a gateway.
BROKER_PACKET_BYTES_MAX = 16 * 1024**2


class Translation:
    """Everything of one connection behind CONNECT. ``problem`` and ``code`` say why it must end, if it must.

    After ``received`` or ``wrap``, ``answer`` is what the device is told besides, and ``answer_upstream`` the broker.
    """

    def __init__(
        self, plan: ConnectPlan, limits: Limits, advice_property: Callable[[], bytes], rights: Rights | None = None
    ) -> None:
        self.problem = ""
        self.code = 0
        self.message_expiry_s: list[int | None] = []  # of each publish that the last ``received`` gave back
        self.closes_without_disconnect = False  # the device left and wants its will published
        self._plan = plan
        self._limits = limits
        self.rights = rights  # what the device may publish on; None: anything
        self.refused = 0  # publishes on other topics
        self.unpaid = 0  # packets that were answered here; whoever sees to them sets it back
        self._advice_property = advice_property
        self._session_expiry_s = plan.session_expiry_s
        self._from_device = FrameScanner(
            limits.packet_bytes_max,
            limits.topic_bytes_max,
            version=5,
            from_device=True,
            properties_max=limits.properties_max,
        )
        self._from_broker = FrameScanner(BROKER_PACKET_BYTES_MAX)
        self._aliases = TopicAliases(limits.topic_alias_max)
        self._receiving = ReceiveWindow(limits.receive_max)
        self._subscriptions = Subscriptions()
        self._delivery = Delivery(plan, self._subscriptions)
        self._answer: list[bytes] = []
        self._is_connected = False
        self._is_over = False  # nothing more is translated
        self._has_parted = False  # the last word between the two is said

    def received(self, data: bytes) -> bytes:
        """The device's bytes, for the broker."""
        self.message_expiry_s = []
        translated = self._translate(self._from_device, data, self._up)
        if self._from_device.problem and not self._is_over:
            self._fail(self._from_device.problem, self._from_device.code)
        return translated

    def wrap(self, data: bytes) -> bytes:
        """The broker's bytes, for the device."""
        translated = self._translate(self._from_broker, data, self._down)
        if self._from_broker.problem and not self._is_over:
            self._fail(_BROKEN, UNSPECIFIED)
        return translated

    def answer(self) -> bytes:
        """What the device is told by the gateway itself, and messages that had waited for it. Taken once."""
        if not self._is_connected:
            return b""
        answer, self._answer = b"".join(self._answer), []
        return answer

    def answer_upstream(self) -> bytes:
        """What the broker is told by the gateway itself. Taken once."""
        answer = b"".join(self._delivery.upstream)
        self._delivery.upstream.clear()
        return answer

    def farewell(self, code: int, told: properties.Properties = properties.EMPTY) -> bytes:
        """The last packet to the device: DISCONNECT, or CONNACK where none was sent. Nothing is translated after it."""
        if self._has_parted:
            return b""
        self._is_over = self._has_parted = True
        if not self._is_connected:
            return encode(refusal_for(code), 5)
        packet = encode(Disconnect(code=code, properties=told), 5)
        return packet if len(packet) <= self._plan.packet_bytes_max else encode(Disconnect(code=code), 5)

    @property
    def dropped(self) -> int:
        """Messages that the device did not get because they are larger than it takes."""
        return self._delivery.dropped

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the device's acknowledgements that no more should be read from the broker."""
        return self._delivery.waiting_bytes >= self._limits.waiting_bytes_max

    @property
    def delete_session_after_s(self) -> int | None:
        """When the broker's session has to be deleted, counted from the device's leaving; None where never."""
        is_kept = self._plan.keeps_session and self._session_expiry_s != properties.NEVER_EXPIRES
        return self._session_expiry_s if is_kept else None

    def _translate(self, scanner: FrameScanner, chunk: bytes, translate: Callable[[int, bytes, bytes], bytes]) -> bytes:
        if self._is_over:
            return b""
        data, start = scanner.scan(chunk), 0
        parts = []
        try:
            for first, body, end in frames_of(data):
                parts.append(translate(first, data[start:end], data[body:end]))
                start = end
                if self._is_over:
                    break
        except Violation as violation:
            self._fail(violation.reason, violation.code)
        return b"".join(parts)

    def _fail(self, problem: str, code: int) -> None:
        self.problem, self.code, self._is_over = problem, code, True

    # From the device.

    def _up(self, first: int, packet: bytes, body: bytes) -> bytes:
        if first == packets.PINGREQ:
            return packet
        if first & 0xF0 in (packets.SUBSCRIBE, packets.UNSUBSCRIBE):
            count = count_filters(body, 5, first & 0xF0 == packets.SUBSCRIBE)
            if count > self._limits.filters_max or len(body) > self._limits.filters_bytes_max:
                raise Violation(PACKET_TOO_LARGE, "SUBSCRIBE too large")
        parsed = parse(first, body, 5, properties_max=self._limits.properties_max)
        check_content(parsed, Sender.DEVICE)
        match parsed:
            case Publish():
                return self._publish_up(parsed)
            case Ack():
                self._answer.append(self._delivery.acknowledged(parsed))
                return encode(parsed, 4)
            case Subscribe():
                return self._ask(self._subscriptions.subscribe(parsed))
            case Unsubscribe():
                return self._ask(self._subscriptions.unsubscribe(parsed))
            case Disconnect():
                return self._leave(parsed)
        raise protocol_error("not for a device to say")

    def _publish_up(self, publish: Publish) -> bytes:
        topic = self._aliases.resolve(publish.topic, publish.properties.optional_number(properties.TOPIC_ALIAS))
        if self.rights is not None and not self.rights.may_publish(topic) and topic != _ADVICE:
            self.refused += 1
            self.unpaid += 1
            words_bytes_max = self._plan.packet_bytes_max if self._plan.takes_properties else 0
            self._answer.append(refusal(publish, words_bytes_max))
            return b""
        if publish.qos:
            self._receiving.begin(publish.packet_id)
        self.message_expiry_s.append(publish.properties.optional_number(properties.MESSAGE_EXPIRY))
        plain = Publish(
            topic=topic,
            payload=publish.payload,
            qos=publish.qos,
            retain=publish.retain,
            duplicate=publish.duplicate,
            packet_id=publish.packet_id,
        )
        return encode(plain, 4)

    def _ask(self, outcome: Subscribe | Unsubscribe | Suback | Unsuback) -> bytes:
        if isinstance(outcome, Subscribe | Unsubscribe):
            return encode(outcome, 4)
        self._answer.append(self._fitting(outcome))
        self.unpaid += len(outcome.codes)
        return b""

    def _leave(self, disconnect: Disconnect) -> bytes:
        expiry_s = disconnect.properties.number(properties.SESSION_EXPIRY, self._session_expiry_s)
        if expiry_s and not self._session_expiry_s:
            raise protocol_error("session expiry after none")
        self._session_expiry_s = min(expiry_s, self._limits.session_expiry_s_max)
        self._is_over = self._has_parted = True
        # Only a normal end takes the will back. In 3.1.1 every DISCONNECT does.
        self.closes_without_disconnect = disconnect.code != 0
        return b"" if self.closes_without_disconnect else DISCONNECT

    # From the broker.

    def _down(self, first: int, packet: bytes, body: bytes) -> bytes:
        kind = first & 0xF0
        if (kind == packets.CONNACK) == self._is_connected:
            raise _broken()
        if kind in (packets.PUBACK, packets.PUBREC, packets.PUBREL, packets.PUBCOMP):
            return self._acknowledge_down(first, packet, body)
        if first == packets.PINGRESP:
            return packet
        parsed = self._parse_down(first, body, 4)
        match parsed:
            case Publish():
                return self._delivery.publish(parsed)
            case Connack():
                return self._connect(parsed)
            case Suback():
                allows = self.rights.may_subscribe if self.rights is not None else lambda _: True
                return self._fitting(self._subscriptions.subscribed(parsed, allows))
            case Unsuback():
                return self._fitting(self._subscriptions.unsubscribed(parsed.packet_id))
        raise _broken()

    def _parse_down(self, first: int, body: bytes, version: int) -> Packet:
        try:
            return parse(first, body, version, properties_max=self._limits.properties_max)
        except Violation:
            raise _broken() from None

    def _connect(self, connack: Connack) -> bytes:
        packet = self._fitting(connack_for(self._plan, connack))
        self._is_connected = connack.code == 0
        self._is_over = self._has_parted = connack.code != 0
        self._subscriptions.are_complete = not connack.session_present
        return packet

    def _acknowledge_down(self, first: int, packet: bytes, body: bytes) -> bytes:
        """Short ones are the same in both versions. Longer ones were written as MQTT 5 by the gateway."""
        if len(body) != 2:
            self._parse_down(first, body, 5)
        kind, packet_id, code = first & 0xF0, int.from_bytes(body[:2], "big"), body[2] if len(body) > 2 else 0
        if kind == packets.PUBREL:
            return packet if self._delivery.released(packet_id) else b""
        if kind != packets.PUBREC or code >= UNSPECIFIED:
            self._receiving.end(packet_id)
        return packet if kind == packets.PUBREC else self._with_advice(packet)

    def _with_advice(self, packet: bytes) -> bytes:
        document = self._advice_property() if self._plan.takes_properties else b""
        if not document:
            return packet
        advised = with_user_property(packet, ADVICE_PROPERTY, document)
        return advised if len(advised) <= self._plan.packet_bytes_max else packet

    def _fitting(self, packet: Packet) -> bytes:
        """For the device. Only messages can be left out; what else is too large for it ends the connection."""
        encoded = encode(packet, 5)
        if len(encoded) > self._plan.packet_bytes_max:
            raise Violation(PACKET_TOO_LARGE, "larger than the client takes")
        return encoded


def _broken() -> Violation:
    return Violation(UNSPECIFIED, _BROKEN)
