"""The advice in force at this gateway, and the message that carries it.

Advice is a lease, and its time runs from the moment its document came, on the gateway's own clock: a device is told
what is left of it. So when the controllers die, devices are let go a lifetime later, by and by, whenever they heard.
"""

import hashlib
from collections.abc import Callable

import msgspec

from tidegate.model.advice import ADVICE_TOPIC, HALVINGS, Advice
from tidegate.model.limits import LimitMet
from tidegate.mqtt.packets import Publish, encode

_TOPIC = ADVICE_TOPIC.encode()
_AS_IT_LIKES = Advice(interval_s=0.0, lifetime_s=1.0)


def place_of(name: bytes) -> float:
    """Where a device stands between 0 and 1: always the same for the same name, whichever gateway it meets."""
    return int.from_bytes(hashlib.blake2b(name, digest_size=4).digest(), "big") / 2**32


class AdviceInForce:
    """``revision`` is another one whenever something else is in force; 0 is nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.revision = 0
        self._clock = clock
        self._advice: Advice | None = None
        self._document = 0  # the revision of its document
        self._came_at_s = 0.0

    def renew(self, advice: Advice | None, revision: int, age_s: float = 0.0) -> None:
        """New advice, or none any more. ``age_s``: how long it has stood on the bus; more than it lasts is the mistake
        of a clock."""
        self._advice = advice
        self.revision = 0
        if advice is not None:
            self.revision, self._document = revision * (HALVINGS + 1), revision
            self._came_at_s = self._clock() - (age_s if 0 < age_s < advice.lasts_s else 0.0)

    def current(self, place: float = 0.0) -> Advice | None:
        """What is in force, with what is left of its lifetime, for a device at this place between 0 and 1: of advice
        to a share of them, those behind it are told to send as they like."""
        if self._advice is None:
            return None
        passed_s = round(self._clock() - self._came_at_s, 3)
        left = self._advice.after(passed_s)
        if left is None:
            self.revision, self._advice = 0, None
        else:
            self.revision = self._document * (HALVINGS + 1) + self._advice.halvings(passed_s)
            if place >= left.share:
                return Advice(interval_s=0.0, lifetime_s=left.lifetime_s)
        return left

    def document(self, place: float = 0.0, limit: LimitMet | None = None) -> bytes:
        """The advice as a device reads it, with the limit that it has met; empty where there is neither."""
        current = self.current(place)
        if limit is not None:
            current = msgspec.structs.replace(current if current is not None else _AS_IT_LIKES, limit=limit)
        return msgspec.json.encode(current) if current is not None else b""

    def packet(self, version: int, place: float = 0.0, limit: LimitMet | None = None) -> bytes:
        """The PUBLISH that advises a device; empty where there is nothing to say."""
        document = self.document(place, limit)
        return encode(Publish(topic=_TOPIC, payload=document), version) if document else b""

    def rate_of(self, device_class: str | None, place: float = 0.0) -> float | None:
        """How often a device of this class may send, per second; None where nothing is asked of it."""
        current = self.current(place)
        interval_s = current.interval_of(device_class) if current is not None else 0.0
        return 1.0 / interval_s if interval_s else None
