"""Messages from a 3.1.1 broker to an MQTT 5 device: no more at a time than it takes, none that is too large for it.

A message that the device does not get is acknowledged to the broker here, so that the broker does not wait for it.
"""

from tidegate.gateway.connection.connect_plan import ConnectPlan
from tidegate.gateway.connection.receive_window import SendWindow
from tidegate.gateway.connection.subscribing import Subscriptions
from tidegate.mqtt.packets import PUBACK, PUBCOMP, PUBREC, Ack, Publish, encode
from tidegate.mqtt.violations import UNSPECIFIED


class Delivery:
    """``upstream`` collects what the broker is told."""

    def __init__(self, plan: ConnectPlan, subscriptions: Subscriptions) -> None:
        self.dropped = 0  # messages larger than the device takes
        self.upstream: list[bytes] = []
        self._packet_bytes_max = plan.packet_bytes_max
        self._subscriptions = subscriptions
        self._window = SendWindow(plan.receive_max)
        self._ended_here: set[int] = set()  # QoS 2 messages whose PUBREL is still to come

    @property
    def waiting_bytes(self) -> int:
        return self._window.waiting_bytes

    def publish(self, publish: Publish) -> bytes:
        """What the device is sent now."""
        if publish.packet_id in self._ended_here:
            return self._end(publish)
        packet = encode(publish, 5)
        if len(packet) > self._packet_bytes_max:
            self.dropped += 1
            return self._end(publish)
        if self._subscriptions.are_against(publish):
            return self._end(publish)
        return self._window.send(publish.packet_id, packet) if publish.qos else packet

    def acknowledged(self, ack: Ack) -> bytes:
        """What the device is sent because it acknowledged a message. One that it refuses at QoS 2 is ended here."""
        refuses = ack.kind == PUBREC and ack.code >= UNSPECIFIED
        if refuses and self._window.has_sent(ack.packet_id):
            self._ended_here.add(ack.packet_id)
        return self._window.end(ack.packet_id) if refuses or ack.kind in (PUBACK, PUBCOMP) else b""

    def released(self, packet_id: int) -> bool:
        """A PUBREL came: whether it is for the device."""
        if packet_id not in self._ended_here:
            return True
        self._ended_here.discard(packet_id)
        self._tell(PUBCOMP, packet_id)
        return False

    def _end(self, publish: Publish) -> bytes:
        if publish.qos == 1:
            self._tell(PUBACK, publish.packet_id)
        elif publish.qos == 2:
            self._ended_here.add(publish.packet_id)
            self._tell(PUBREC, publish.packet_id)
        return b""

    def _tell(self, kind: int, packet_id: int) -> None:
        self.upstream.append(encode(Ack(kind=kind, packet_id=packet_id), 4))
