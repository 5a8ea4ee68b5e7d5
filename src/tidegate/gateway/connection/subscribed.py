"""What a device has subscribed to at its broker, with the options, as far as this connection has seen it."""

from tidegate.gateway.connection.subscribing import BYTES_MAX
from tidegate.mqtt.packets import Suback, Subscribe, Unsubscribe
from tidegate.mqtt.violations import UNSPECIFIED

_ENTRY_BYTES = 64
# A filter, its options, and the subscription identifiers of MQTT 5.
Subscription = tuple[bytes, int, tuple[int, ...]]


class Subscribed:
    """``are_known`` says whether it is all of it: the session began with this connection, and it is no more than may be
    remembered."""

    def __init__(self) -> None:
        self.are_known = False
        self._known: dict[bytes, Subscription] = {}
        self._bytes = 0
        self._asked: dict[int, tuple[Subscription, ...]] = {}

    def began(self, session_present: bool) -> None:
        self.are_known = not session_present

    @property
    def is_settled(self) -> bool:
        """Whether the broker has answered everything."""
        return not self._asked

    def filters(self) -> list[bytes]:
        return list(self._known)

    def all(self) -> list[Subscription]:
        return list(self._known.values())

    def asked(self, packet: Subscribe) -> None:
        identifiers = packet.properties.identifiers
        self._asked[packet.packet_id] = tuple((name, options, identifiers) for name, options in packet.entries)

    def answered(self, packet: Suback) -> None:
        for one, code in zip(self._asked.pop(packet.packet_id, ()), packet.codes, strict=False):
            if code < UNSPECIFIED:
                self._remember(one)

    def gone(self, packet: Unsubscribe) -> None:
        for name in packet.filters:
            if self._known.pop(name, None) is not None:
                self._bytes -= len(name) + _ENTRY_BYTES

    def _remember(self, one: Subscription) -> None:
        if one[0] not in self._known:
            self._bytes += len(one[0]) + _ENTRY_BYTES
            if self._bytes > BYTES_MAX:
                self._bytes -= len(one[0]) + _ENTRY_BYTES
                self.are_known = False
                return
        self._known[one[0]] = one
