"""SUBSCRIBE and UNSUBSCRIBE of MQTT 5 on a 3.1.1 broker: what is asked there, and what the gateway answers itself.

A broker of 3.1.1 sends the retained messages at every SUBSCRIBE. Retain Handling is kept to by not asking again for
what is subscribed already, and by taking out the retained messages that only such subscriptions match: a message with
the flag RETAIN is never anything else than an answer to a SUBSCRIBE.
"""

from collections.abc import Callable

import msgspec

from tidegate.mqtt.filter_index import FilterIndex
from tidegate.mqtt.names import is_shared
from tidegate.mqtt.packets import Publish, Suback, Subscribe, Unsuback, Unsubscribe
from tidegate.mqtt.violations import NOT_AUTHORIZED, QUOTA_EXCEEDED, UNSPECIFIED, Violation, protocol_error

UNANSWERED_MAX = 64
BYTES_MAX = 256 * 1024  # of the subscriptions that are remembered
_ENTRY_BYTES = 64
_QOS, _NO_LOCAL, _HANDLING_SHIFT = 0x03, 0x04, 4
_NO_RETAINED = 2
NO_SUBSCRIPTION_EXISTED = 0x11
NOT_SUPPORTED_HERE = 0x83
SHARED_NOT_SUPPORTED = 0x9E
IDENTIFIERS_NOT_SUPPORTED = 0xA1


class _Subscription(msgspec.Struct, kw_only=True):
    qos: int
    granted: int | None  # None until the broker has answered
    is_quiet: bool  # no retained messages are wanted from it


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    """A SUBSCRIBE that awaits the broker's answer: a code for each filter, or None where the broker's belongs."""

    filters: tuple[bytes, ...]
    codes: tuple[int | None, ...]


class Subscriptions:
    """Those of one device on this connection. What it had subscribed before is known to the broker alone."""

    def __init__(self) -> None:
        self.are_complete = False  # whether the session began with this connection
        self._known: FilterIndex[_Subscription] = FilterIndex()
        self._known_bytes = 0
        self._subscribing: dict[int, _Request] = {}
        self._unsubscribing: dict[int, bytes] = {}

    def subscribe(self, packet: Subscribe) -> Subscribe | Suback:
        """What goes to the broker or, where it need not be asked for anything, the answer."""
        if packet.properties.identifiers:
            raise Violation(IDENTIFIERS_NOT_SUPPORTED, "subscription identifier")
        codes: list[int | None] = []
        entries: list[tuple[bytes, int]] = []
        for topic_filter, options in packet.entries:
            code = self._own_code(topic_filter, options)
            codes.append(code)
            if code is None:
                self._remember(topic_filter, options)
                entries.append((topic_filter, options & _QOS))
        if not entries:
            return Suback(packet_id=packet.packet_id, codes=bytes(code for code in codes if code is not None))
        self._check(packet.packet_id)
        filters = tuple(topic_filter for topic_filter, _ in packet.entries)
        self._subscribing[packet.packet_id] = _Request(filters=filters, codes=tuple(codes))
        return Subscribe(packet_id=packet.packet_id, entries=tuple(entries))

    def subscribed(self, packet: Suback, allows: Callable[[bytes], bool] = lambda _: True) -> Suback:
        """The answer, in the words of MQTT 5: who is refused what it has no right to hears that this is the reason."""
        request = self._subscribing.pop(packet.packet_id, None)
        if request is None:
            return packet
        answers = iter(packet.codes)
        codes = bytearray()
        for topic_filter, own in zip(request.filters, request.codes, strict=True):
            code = next(answers, UNSPECIFIED) if own is None else own
            if code == UNSPECIFIED and not allows(topic_filter):
                code = NOT_AUTHORIZED
            codes.append(code)
            if own is None:
                self._settle(topic_filter, code)
        return Suback(packet_id=packet.packet_id, codes=bytes(codes))

    def unsubscribe(self, packet: Unsubscribe) -> Unsubscribe | Unsuback:
        codes = bytearray()
        for topic_filter in packet.filters:
            existed = self._forget(topic_filter) or not (self.are_complete or is_shared(topic_filter))
            codes.append(0 if existed else NO_SUBSCRIPTION_EXISTED)
        filters = tuple(each for each in packet.filters if not is_shared(each))
        if not filters:
            return Unsuback(packet_id=packet.packet_id, codes=bytes(codes))
        self._check(packet.packet_id)
        self._unsubscribing[packet.packet_id] = bytes(codes)
        return Unsubscribe(packet_id=packet.packet_id, filters=filters)

    def unsubscribed(self, packet_id: int) -> Unsuback:
        return Unsuback(packet_id=packet_id, codes=self._unsubscribing.pop(packet_id, b"\0"))

    def are_against(self, publish: Publish) -> bool:
        """Whether it is a retained message that no subscription wants. One sent again was wanted before."""
        if not publish.retain or publish.duplicate:
            return False
        wanting = [not each.is_quiet for each in self._known.matching(publish.topic)]
        return bool(wanting) and not any(wanting)

    def _own_code(self, topic_filter: bytes, options: int) -> int | None:
        """The gateway's answer; None where the broker has to be asked."""
        if is_shared(topic_filter):
            return SHARED_NOT_SUPPORTED
        if options & _NO_LOCAL:
            return NOT_SUPPORTED_HERE
        known = self._known.get(topic_filter)
        if known is None:
            has_room = self._known_bytes + len(topic_filter) + _ENTRY_BYTES <= BYTES_MAX
            return None if has_room and self._known.has_room_for(topic_filter) else QUOTA_EXCEEDED
        is_same = options >> _HANDLING_SHIFT and options & _QOS == known.qos
        return known.granted if is_same else None

    def _remember(self, topic_filter: bytes, options: int) -> None:
        handling, known = options >> _HANDLING_SHIFT, self._known.get(topic_filter)
        if known is None:
            self._known_bytes += len(topic_filter) + _ENTRY_BYTES
            is_quiet = handling == _NO_RETAINED
        else:
            # While an earlier SUBSCRIBE is unanswered, the retained messages it asked for may still be coming.
            is_quiet = handling > 0 and (known.granted is not None or known.is_quiet)
        self._known.put(topic_filter, _Subscription(qos=options & _QOS, granted=None, is_quiet=is_quiet))

    def _settle(self, topic_filter: bytes, code: int) -> None:
        if code >= UNSPECIFIED:
            self._forget(topic_filter)
        elif (known := self._known.get(topic_filter)) is not None:
            known.granted = code

    def _forget(self, topic_filter: bytes) -> bool:
        if self._known.pop(topic_filter) is None:
            return False
        self._known_bytes -= len(topic_filter) + _ENTRY_BYTES
        return True

    def _check(self, packet_id: int) -> None:
        """Whether one more packet may await the broker's answer."""
        if packet_id in self._subscribing or packet_id in self._unsubscribing:
            raise protocol_error("packet identifier in use")
        if len(self._subscribing) + len(self._unsubscribing) >= UNANSWERED_MAX:
            raise Violation(QUOTA_EXCEEDED, "too many unanswered subscriptions")
