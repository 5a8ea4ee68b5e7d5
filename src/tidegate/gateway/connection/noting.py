"""Which readings devices were told are safe: noted by identity while acknowledgements pass. No IO, no clock.

A publish waits here until the broker has acknowledged it (PUBACK, or PUBCOMP: a broker may keep a message of QoS 2 to
itself until it is released). Only then is its payload looked at, for two numbers. Devices count upwards, so what one
of them was told between two reports is a run or two. Nothing here may cost a device anything: what finds no room is
counted as unwatched and passes all the same.
"""

from typing import Final

import msgspec

from tidegate.model.readings import IDENTIFIED_BYTES, NATURAL_MAX, PAYLOAD_BYTES_MAX, TELEMETRY, Identified, Reading
from tidegate.mqtt.frames import frame_size, variable_length

# What may wait for its acknowledgement, of one connection and of a process, with what Python needs to keep it.
CONNECTION_BYTES_MAX: Final = 1024**2
PROCESS_BYTES_MAX: Final = 64 * 1024**2
_KEPT_BYTES: Final = 160
# Runs between two reports. Those of a track are joined from so many on: often order was all they lacked.
RUNS_MAX: Final = 200_000
_JOIN_AT: Final = 64
_PUBLISH: Final = 0x30
_PUBACK: Final = 0x40
_PUBCOMP: Final = 0x70
_REFUSED: Final = 0x80
_LEVEL: Final = 0x2F  # what parts a topic's levels
_TELEMETRY: Final = f"{TELEMETRY}/".encode()
_DEVICE: Final = 2 + len(TELEMETRY) + 1  # where it begins in the body of a publish
_IDENTIFIED = msgspec.json.Decoder(Identified).decode
_READING = msgspec.json.Decoder(Reading).decode

# Boot, first and last sequence number, both included.
Run = tuple[int, int, int]


class Track:
    """What was acknowledged to one device since the last report. The last run is kept apart: it is the one to grow."""

    def __init__(self, device: bytes) -> None:
        self.device = device
        self.runs: list[Run] = []
        self.join_at = _JOIN_AT
        self.boot = -1
        self.low = 0
        self.high = -1

    def all_runs(self) -> list[Run]:
        """In order, none beside another."""
        if self.boot < 0:
            return []
        last = (self.boot, self.low, self.high)
        return joined([*self.runs, last]) if self.runs else [last]


class Noted:
    """What all connections of a process noted. The counts only grow."""

    def __init__(self) -> None:
        self.noted = 0  # acknowledged readings whose identity was noted
        self.nameless = 0  # acknowledged on a topic for readings, but without an identity to note
        self.unwatched = 0  # acknowledged, and there was no room to note it
        self.generation = 0
        self.waiting_bytes = 0
        self._tracks: dict[bytes, Track] = {}  # by device
        self._topics: dict[bytes, Track] = {}  # a device may have several
        self._runs = 0

    def take(self) -> list[Track]:
        """Everything since it was last asked for."""
        tracks = list(self._tracks.values())
        self._tracks, self._topics, self._runs = {}, {}, 0
        self.generation += 1
        return tracks

    def track(self, topic: bytes) -> Track | None:
        """That of the topic's device; None where there are too many already."""
        found = self._topics.get(topic)
        if found is not None or self._runs >= RUNS_MAX:
            return found
        device = topic.split(b"/", 2)[1]
        found = self._tracks.get(device)
        if found is None:
            found = self._tracks[device] = Track(device)
        self._topics[topic] = found
        self._runs += 1
        return found

    def acknowledge(self, topic: bytes, payload: bytes) -> None:
        """A reading that came without a connection of its own."""
        self.note(self.track(topic), payload)

    def note(self, track: Track | None, payload: bytes) -> None:
        if track is None:
            self.unwatched += 1
            return
        try:
            identified: Identified = _IDENTIFIED(payload) if len(payload) <= IDENTIFIED_BYTES else _of_long(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.nameless += 1
            return
        boot: int = identified.boot
        seq: int = identified.seq
        if boot == track.boot and seq == track.high + 1 and seq <= NATURAL_MAX:
            track.high = seq
            self.noted += 1
        elif 0 <= boot <= NATURAL_MAX and 0 <= seq <= NATURAL_MAX:
            self._begin(track, boot, seq)
        else:
            self.nameless += 1

    def _begin(self, track: Track, boot: int, seq: int) -> None:
        """A reading that does not follow the one before."""
        if boot == track.boot and track.low <= seq <= track.high:
            self.noted += 1
            return
        if self._runs >= RUNS_MAX:
            self.unwatched += 1
            return
        if track.boot >= 0:
            track.runs.append((track.boot, track.low, track.high))
            self._runs += 1
        track.boot, track.low, track.high = boot, seq, seq
        self.noted += 1
        if len(track.runs) >= track.join_at:
            before = len(track.runs)
            track.runs = joined(track.runs)
            track.join_at = max(_JOIN_AT, 2 * len(track.runs))  # twice as many, so that all joining costs as one
            self._runs -= before - len(track.runs)


class Noting:
    """One connection: publishes on their way, until they are acknowledged."""

    def __init__(self, noted: Noted, version: int) -> None:
        self._noted = noted
        self._version = version
        self._waiting: dict[int, bytes] = {}
        self._bytes = 0
        self._topic = b""
        self._track: Track | None = None
        self._generation = -1
        self._has_left = False

    def sent(self, data: bytes) -> None:
        """Whole packets that go to the broker."""
        position, size = 0, len(data)
        while position < size:
            first = data[position]
            if data[position + 1] < 0x80:
                body = position + 2
                end = body + data[position + 1]
            else:
                header, total = frame_size(data, position)
                body, end = position + header, position + total
            if first & 0xF0 == _PUBLISH and first & 0x06:
                place = body + 2 + (data[body] << 8 | data[body + 1])
                device = body + _DEVICE
                if place > device and data[body + 2 : device] == _TELEMETRY and data[device] != _LEVEL:
                    packet_id = data[place] << 8 | data[place + 1]
                    self._keep(packet_id, data if position == 0 and end == size else data[position:end])
            position = end

    def _keep(self, packet_id: int, packet: bytes) -> None:
        if self._has_left:
            return
        before = self._waiting.get(packet_id)
        cost = _KEPT_BYTES + len(packet)
        more = cost if before is None else len(packet) - len(before)
        noted = self._noted
        if self._bytes + more > CONNECTION_BYTES_MAX or noted.waiting_bytes + more > PROCESS_BYTES_MAX:
            if before is not None:
                self._forget(packet_id, before)
            noted.unwatched += 1
            return
        self._waiting[packet_id] = packet
        self._bytes += more
        noted.waiting_bytes += more

    def _forget(self, packet_id: int, packet: bytes) -> None:
        del self._waiting[packet_id]
        cost = _KEPT_BYTES + len(packet)
        self._bytes -= cost
        self._noted.waiting_bytes -= cost

    def acknowledged(self, data: bytes) -> None:
        """Whole packets of the broker's, among them acknowledgements."""
        if not self._waiting:
            return
        position, size = 0, len(data)
        while position < size:
            kind = data[position] & 0xF0
            if data[position + 1] < 0x80:
                body = position + 2
                end = body + data[position + 1]
            else:
                header, total = frame_size(data, position)
                body, end = position + header, position + total
            if kind in (_PUBACK, _PUBCOMP) and end - body >= 2:
                packet_id = data[body] << 8 | data[body + 1]
                packet = self._waiting.get(packet_id)
                if packet is not None:
                    self._forget(packet_id, packet)
                    if end - body == 2 or data[body + 2] < _REFUSED:
                        self._note(packet)
            position = end

    def _note(self, packet: bytes) -> None:
        header = 2 if packet[1] < 0x80 else frame_size(packet, 0)[0]
        place = header + 2 + (packet[header] << 8 | packet[header + 1])
        topic = packet[header + 2 : place]
        noted = self._noted
        if topic != self._topic or self._generation != noted.generation or self._track is None:
            self._topic, self._generation, self._track = topic, noted.generation, noted.track(topic)
        place += 2
        if self._version == 5:
            length, place = variable_length(packet, place, len(packet))
            place += length
        noted.note(self._track, packet[place:])

    def leave(self) -> None:
        """The connection is gone: what was not acknowledged by now never is."""
        self._noted.waiting_bytes -= self._bytes
        self._bytes = 0
        self._waiting = {}
        self._has_left = True


def joined(runs: list[Run]) -> list[Run]:
    """The same sequence numbers in ascending runs, as few as can be."""
    found: list[Run] = []
    for boot, low, high in sorted(runs):
        if found and found[-1][0] == boot and low <= found[-1][2] + 1:
            found[-1] = (boot, found[-1][1], max(high, found[-1][2]))
        else:
            found.append((boot, low, high))
    return found


def _of_long(payload: bytes) -> Identified:
    """Of a payload that ``rejected`` would keep only in part: noted only where it is a reading without doubt."""
    if len(payload) <= PAYLOAD_BYTES_MAX:
        reading = _READING(payload)
        if reading.boot is not None and reading.seq is not None and reading.contradiction() is None:
            return Identified(reading.boot, reading.seq)
    return Identified()
