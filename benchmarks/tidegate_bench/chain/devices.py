"""Devices that publish readings at QoS 1, each on a connection of its own, for as little processor time as Python can.

A device has at most ``WINDOW`` publishes in flight. What is due beyond that waits with the device, and its time of
taking stays the one when it was due: a chain that makes devices wait gets older readings, not fewer.
"""

import socket
import time
from array import array

from tidegate.model.errors import TidegateError
from tidegate.mqtt.client import encode_publish
from tidegate.mqtt.fields import PACKET_ID_MAX

WINDOW = 16
_PUBACK_BYTES = 4


class Schedule:
    """When each reading is due. Reading number n of a load belongs to device n mod devices."""

    def __init__(self, rate_per_s: float, devices: int) -> None:
        self._every_s, self._devices = 1 / rate_per_s, devices
        self.began_s, self._began_unix_s = time.monotonic(), time.time()
        self.late_s_max = 0.0

    def due(self, now_s: float) -> int:
        """How many readings are due by now."""
        return int((now_s - self.began_s) / self._every_s)

    def taken_s(self, place: int, turn: int, now_s: float) -> float:
        """When a device's reading was due, in Unix time."""
        due_s = (turn * self._devices + place) * self._every_s
        self.late_s_max = max(self.late_s_max, now_s - self.began_s - due_s)
        return self._began_unix_s + due_s


class FlatOut:
    """A reading is due whenever a device can send one."""

    late_s_max = 0.0

    @staticmethod
    def taken_s(place: int, turn: int, now_s: float) -> float:  # noqa: ARG004 - the schedule's signature
        return time.time()


class LoadDevice:
    """``due`` readings wait to be sent. ``turn`` counts those of this load, ``sent`` all that it ever sent.

    One whose connection is lost does nothing until it has another; what it had in flight stays unacknowledged.
    """

    def __init__(self, place: int, name: str, took_ms: "array[float]") -> None:
        self.place = place
        self.due = self.turn = self.sent = self.acked = 0
        self._topic = f"telemetry/{name}".encode()
        self._took_ms = took_ms

    def connected(self, connection: socket.socket) -> None:
        self.socket, self.is_lost = connection, False
        self._packet_id = 0
        self._in_flight: dict[int, float] = {}
        self._unsent = self._unread = b""

    @property
    def in_flight(self) -> int:
        return 0 if self.is_lost else len(self._in_flight)

    @property
    def is_blocked(self) -> bool:
        """Whether its peer takes nothing more at the moment."""
        return bool(self._unsent)

    def send(self, schedule: Schedule | FlatOut, now_s: float) -> None:
        """As much of what is due as the window and the socket take, in one system call."""
        count = min(self.due, WINDOW - len(self._in_flight))
        if count <= 0:
            return
        packets = []
        for _ in range(count):
            self._packet_id = self._packet_id % PACKET_ID_MAX + 1
            taken_s = schedule.taken_s(self.place, self.turn, now_s)
            payload = b'{"boot":1,"seq":%d,"time":%.4f,"value":%d.5}' % (self.sent, taken_s, self.sent % 80)
            packets.append(encode_publish(self._topic, payload, packet_id=self._packet_id))
            self._in_flight[self._packet_id] = now_s
            self.sent += 1
            self.turn += 1
        self.due -= count
        self._write(b"".join(packets))

    def go_on(self) -> None:
        """The socket takes more again."""
        self._write(self._unsent)

    def receive(self, now_s: float) -> None:
        """Acknowledgements, which are all that a device is sent here."""
        try:
            data = self.socket.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.is_lost = True
            return
        data = self._unread + data
        whole = len(data) - len(data) % _PUBACK_BYTES
        for place in range(0, whole, _PUBACK_BYTES):
            if data[place] != 0x40:
                raise TidegateError(
                    f"A device of the load was sent {data[place : place + 4]!r}, and no acknowledgement."
                )
            sent_s = self._in_flight.pop(data[place + 2] << 8 | data[place + 3])
            self._took_ms.append((now_s - sent_s) * 1e3)
        self.acked += whole // _PUBACK_BYTES
        self._unread = data[whole:]

    def _write(self, data: bytes) -> None:
        try:
            taken = self.socket.send(data)
        except BlockingIOError:
            taken = 0
        except OSError:  # what was said before the end is still to be read
            taken = len(data)
        self._unsent = data[taken:]
