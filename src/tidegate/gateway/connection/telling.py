"""What a device is told besides what its broker says: the advice in force, and a limit that it has met.

A device that has subscribed to the advice topic is sent a message; another one of MQTT 5 finds the same document as a
property of an acknowledgement. Each revision of advice is told once.
"""

import math
from typing import Final

from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.translation import ADVICE_PROPERTY
from tidegate.gateway.shared.tally import Tally
from tidegate.model.limits import LimitMet
from tidegate.mqtt.acknowledgements import with_user_property
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.violations import Violation

LIMIT_TOLD_S: Final = 1.0  # a device is told no more often of the limit it meets
_PUBACK: Final = 0x40
_PUBCOMP: Final = 0x70


class Telling:
    """``packet_bytes_max`` is the largest packet that the device takes; ``news_bytes_max`` the largest acknowledgement
    with a property, 0 where it takes none. ``is_broken``: the broker has said what is no acknowledgement."""

    def __init__(  # noqa: PLR0917 - compiled code takes its arguments by place
        self,
        version: int,
        advice: AdviceInForce,
        tally: Tally,
        place: float,
        packet_bytes_max: int,
        news_bytes_max: int,
    ) -> None:
        self.is_subscribed = False
        self.is_broken = False
        self.news_bytes_max = news_bytes_max
        self._version = version
        self._advice = advice
        self._tally = tally
        self._place = place  # of the device, for advice that is meant for a share of them
        self._packet_bytes_max = packet_bytes_max
        self._revision = 0  # of the advice that it was told last
        self._met: LimitMet | None = None  # that it has not been told of
        self._met_s = -math.inf  # when it was told of one

    @property
    def has_news(self) -> bool:
        return self._met is not None or self._revision != self._advice.revision

    def subscribed(self, is_subscribed: bool) -> None:
        """It asks for advice, again or no more: what it was told counts no more."""
        self.is_subscribed, self._revision = is_subscribed, 0

    def is_due(self, now_s: float) -> bool:
        """Whether it may be told of a limit now."""
        return now_s - self._met_s >= LIMIT_TOLD_S and (self.is_subscribed or self.news_bytes_max > 0)

    def meet(self, met: LimitMet | None, now_s: float) -> bytes:
        """Its publishes wait for this. What it is sent now: the other way, the next acknowledgement says it."""
        self._met_s, self._met = now_s, met
        if not self.is_subscribed or met is None:
            return b""
        self._met = None
        packet = self._advice.packet(self._version, self._place, met)
        return packet if len(packet) <= self._packet_bytes_max else b""

    def news(self) -> bytes:
        """The document for a device that has not subscribed, if there is anything that it has not been told."""
        if self.is_subscribed or not self.news_bytes_max or not self.has_news:
            return b""
        document = self._advice.document(self._place, self._met)
        self._met = None
        # A lapsed advice has revision 0: nothing is sent, and nothing is remembered as sent.
        self._revision = self._advice.revision
        self._tally.advised += bool(document)
        return document

    def with_news(self, data: bytes) -> bytes:
        """The broker's packets, acknowledgements or a ping answer among them, with what there is to tell."""
        if self.is_subscribed:
            packet = self._advice.packet(self._version, self._place)
            if len(packet) > self._packet_bytes_max:
                packet = b""
            self._revision = self._advice.revision
            self._tally.advised += bool(packet)
            return data + packet
        if self._version < 5:
            return data
        parts, start = [], 0
        for first, _, end in frames_of(data):
            packet = data[start:end]
            start = end
            if first & 0xF0 in (_PUBACK, _PUBCOMP) and (document := self.news()):
                packet = self._with_property(packet, document)
            parts.append(packet)
        return b"".join(parts)

    def _with_property(self, packet: bytes, document: bytes) -> bytes:
        try:
            advised = with_user_property(packet, ADVICE_PROPERTY, document)
        except Violation:
            self.is_broken = True
            return packet
        return advised if len(advised) <= self.news_bytes_max else packet
