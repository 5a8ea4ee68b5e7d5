"""The receive maximum of MQTT 5, both ways: how many messages at QoS 1 and 2 may be on their way at a time."""

from tidegate.mqtt.violations import Violation

RECEIVE_MAX_EXCEEDED = 0x93


class ReceiveWindow:
    """What a device has published and nobody has acknowledged yet. One that goes beyond what it was told is
    closed."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._open: set[int] = set()

    def begin(self, packet_id: int) -> None:
        self._open.add(packet_id)
        if len(self._open) > self._count_max:
            raise Violation(RECEIVE_MAX_EXCEEDED, "receive maximum exceeded")

    def end(self, packet_id: int) -> None:
        self._open.discard(packet_id)


class SendWindow:
    """What a device has been sent and has not acknowledged, and what waits for that, in the broker's order.

    A broker that sends a message again while it waits here does not make it wait twice: the packet identifier tells.
    """

    def __init__(self, count_max: int) -> None:
        self.waiting_bytes = 0
        self._count_max = count_max
        self._sent: set[int] = set()
        self._waiting: dict[int, bytes] = {}

    def send(self, packet_id: int, packet: bytes) -> bytes:
        """The packet, if it may go now."""
        if packet_id in self._sent or self._has_room():
            self._sent.add(packet_id)
            return packet
        self.waiting_bytes += len(packet) - len(self._waiting.get(packet_id, b""))
        self._waiting[packet_id] = packet
        return b""

    def end(self, packet_id: int) -> bytes:
        """A message is done with: what may go instead of it."""
        self._sent.discard(packet_id)
        ready = []
        while self._waiting and self._has_room():
            waited_id = next(iter(self._waiting))
            packet = self._waiting.pop(waited_id)
            self.waiting_bytes -= len(packet)
            self._sent.add(waited_id)
            ready.append(packet)
        return b"".join(ready)

    def has_sent(self, packet_id: int) -> bool:
        return packet_id in self._sent

    def _has_room(self) -> bool:
        return len(self._sent) < self._count_max
