"""What of one connection is on its way at QoS 1 and 2, in both directions. No IO, no clock.

At QoS 1 it is counted: every publish that passes is answered once, sent again or not. At QoS 2 it is kept by its packet
identifier, because several packets belong to one message, and a refusal ends it earlier.
"""

from typing import Final

from tidegate.mqtt.frames import Frame, frames_of

_PUBLISH: Final = 0x30
_PUBACK: Final = 0x40
_PUBREC: Final = 0x50
_PUBREL: Final = 0x60
_PUBCOMP: Final = 0x70
_REFUSED: Final = 0x80


class InFlight:
    """``up`` is towards the broker. Whoever passes plain bytes on counts what is at QoS 1 itself."""

    def __init__(self) -> None:
        self.up = 0
        self.down = 0
        self.ended_down = 0  # acknowledgements of the device's; it only grows
        self.strays = 0  # of them, those of nothing that was sent here; whoever sees to them sets it back
        self._up_2: set[int] = set()
        self._down_2: set[int] = set()

    @property
    def is_none(self) -> bool:
        return self.up <= 0 and self.down <= 0 and not self._up_2 and not self._down_2

    @property
    def waits_for_device(self) -> bool:
        return self.down > 0 or bool(self._down_2)

    def counted(self, begun_up: int, ended_down: int) -> None:
        """Plain bytes of the device: publishes at QoS 1, and acknowledgements of them."""
        self.up += begun_up
        self.ended_down += ended_down
        if ended_down > self.down:
            self.strays += ended_down - self.down
            self.down = 0
        else:
            self.down -= ended_down

    def counted_down(self, begun_down: int, ended_up: int) -> None:
        self.down += begun_down
        self.up = max(0, self.up - ended_up)

    def sent_up(self, data: bytes) -> None:
        """Whole packets that go to the broker, one by one."""
        for frame in frames_of(data):
            first = frame[0]
            kind = first & 0xF0
            if kind == _PUBLISH and first & 6 == 2:
                self.up += 1
            elif kind == _PUBACK:
                self.counted(0, 1)
            elif kind in (_PUBLISH, _PUBREC, _PUBREL, _PUBCOMP):
                self.ended_down += kind in (_PUBREC, _PUBCOMP)
                self.strays += _is_stray(data, frame, self._up_2, self._down_2)
                _follow(data, frame, self._up_2, self._down_2)

    def follow_up(self, data: bytes) -> None:
        """The same for what is at QoS 2 alone."""
        for frame in frames_of(data):
            self.ended_down += frame[0] & 0xF0 in (_PUBREC, _PUBCOMP)
            self.strays += _is_stray(data, frame, self._up_2, self._down_2)
            _follow(data, frame, self._up_2, self._down_2)

    def follow_down(self, data: bytes) -> None:
        for frame in frames_of(data):
            _follow(data, frame, self._down_2, self._up_2)


def _follow(data: bytes, frame: Frame, begun: set[int], ended: set[int]) -> None:
    """One packet: what its sender begins, and what of the other's it ends."""
    first, body, end = frame
    kind = first & 0xF0
    if kind == _PUBLISH:
        if first & 6 == 4 and end - body >= 2:
            place = body + 2 + (data[body] << 8 | data[body + 1])
            if place + 2 > end:
                return  # the device's to judge
            begun.add(data[place] << 8 | data[place + 1])
    elif kind in (_PUBREC, _PUBREL, _PUBCOMP) and end - body >= 2:
        packet_id = data[body] << 8 | data[body + 1]
        if kind == _PUBREL:
            begun.add(packet_id)
        elif kind == _PUBCOMP or (end - body > 2 and data[body + 2] >= _REFUSED):
            ended.discard(packet_id)


def _is_stray(data: bytes, frame: Frame, begun: set[int], ended: set[int]) -> bool:
    """Whether a device's PUBREC, PUBREL or PUBCOMP belongs to nothing that is on its way here."""
    first, body, end = frame
    kind = first & 0xF0
    if kind not in (_PUBREC, _PUBREL, _PUBCOMP) or end - body < 2:
        return False
    packet_id = data[body] << 8 | data[body + 1]
    return packet_id not in (begun if kind == _PUBREL else ended)
