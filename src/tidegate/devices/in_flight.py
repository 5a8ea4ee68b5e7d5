"""The messages of one connection that wait for their acknowledgement, in the order in which they were first sent."""

from collections.abc import Iterator

import msgspec

from tidegate.mqtt import client as mqtt
from tidegate.mqtt.fields import PACKET_ID_MAX

# The highest packet identifier belongs to the subscription, all others to readings.
SUBSCRIPTION_ID = PACKET_ID_MAX


class Message(msgspec.Struct, gc=False):
    """A reading on its way: everything that is needed to send it again and to write its acknowledgement."""

    device: str
    boot: int
    seq: int
    count: int
    topic: bytes
    payload: bytes
    written_s: float | None  # when it last went out; None while it waits for a first connection


class InFlight:
    """At most ``window`` messages by their packet identifiers."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._messages: dict[int, Message] = {}
        self._packet_id = 0

    @property
    def has_room(self) -> bool:
        return len(self._messages) < self._window

    def add(self, message: Message) -> int:
        """The packet identifier that the message has from now on, until it is acknowledged."""
        # The window is far smaller than the number of identifiers, so a free one is always near.
        while True:
            self._packet_id = self._packet_id % (SUBSCRIPTION_ID - 1) + 1
            if self._packet_id not in self._messages:
                self._messages[self._packet_id] = message
                return self._packet_id

    def pop(self, packet_id: int) -> Message | None:
        """The message that was acknowledged; None where none waits under this identifier."""
        return self._messages.pop(packet_id, None)

    def frames_again(self, now_s: float) -> Iterator[tuple[bytes, bool]]:
        """Everything once more for a new connection, in order, and whether it had been sent before."""
        for packet_id, message in self._messages.items():
            duplicate = message.written_s is not None
            message.written_s = now_s
            yield (
                mqtt.encode_publish(message.topic, message.payload, packet_id=packet_id, duplicate=duplicate),
                duplicate,
            )

    def waiting_s(self, now_s: float) -> float:
        """How long the oldest message has waited since it last went out."""
        oldest = next(iter(self._messages.values()), None)
        return 0.0 if oldest is None or oldest.written_s is None else now_s - oldest.written_s
