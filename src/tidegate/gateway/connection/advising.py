"""The advice in force at this gateway, and the message that carries it.

Advice is a lease, and its time runs from the moment its document came, on the gateway's own clock: a device is told
what is left of it. So when the controllers die, the last device is free again one lifetime later, whenever it heard.
"""

from collections.abc import Callable

import msgspec

from tidegate.model.advice import ADVICE_TOPIC, Advice
from tidegate.mqtt.packets import Publish, encode

_TOPIC = ADVICE_TOPIC.encode()


class AdviceInForce:
    """``revision`` says which document is the newest; 0 is none."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.revision = 0
        self._clock = clock
        self._advice: Advice | None = None
        self._lapses_at_s = 0.0

    def renew(self, advice: Advice | None, revision: int) -> None:
        """New advice, or none any more."""
        self._advice = advice
        self.revision = 0
        if advice is not None:
            self.revision = revision
            self._lapses_at_s = self._clock() + advice.lifetime_s

    def current(self) -> Advice | None:
        """What is in force, with what is left of its lifetime."""
        if self._advice is None:
            return None
        left_s = round(self._lapses_at_s - self._clock(), 3)
        if left_s <= 0:
            self.revision, self._advice = 0, None
            return None
        return msgspec.structs.replace(self._advice, lifetime_s=left_s)

    def document(self) -> bytes:
        """The advice as a device reads it; empty where nothing is in force."""
        current = self.current()
        return msgspec.json.encode(current) if current is not None else b""

    def packet(self, version: int) -> bytes:
        """The PUBLISH that advises a device; empty where nothing is in force."""
        document = self.document()
        return encode(Publish(topic=_TOPIC, payload=document), version) if document else b""

    def rate_of(self, device_class: str | None) -> float | None:
        """How often a device of this class may send, per second; None where nothing is asked of it."""
        current = self.current()
        interval_s = current.interval_of(device_class) if current is not None else 0.0
        return 1.0 / interval_s if interval_s else None
