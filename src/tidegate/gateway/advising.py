"""The advice in force at this gateway, and the message that carries it.

Advice is a lease. A document that nobody renews for its lifetime, on the gateway's own clock since it came, is no
longer passed on, so a controller that died keeps no device slow.
"""

from collections.abc import Callable

import msgspec

from tidegate.devices.mqtt import encode_publish
from tidegate.model.advice import ADVICE_TOPIC, Advice

_DECODER = msgspec.json.Decoder(Advice)


class AdviceInForce:
    """``revision`` says which document is the newest; 0 is none."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.revision = 0
        self._clock = clock
        self._advice: Advice | None = None
        self._packet = b""
        self._lapses_at_s = 0.0

    def renew(self, document: bytes | None, revision: int) -> None:
        """A new document, or none any more. One that cannot be read is none: a device must not be sent it."""
        self.revision, self._advice = 0, None
        if document is None:
            return
        try:
            self._advice = _DECODER.decode(document)
        except msgspec.DecodeError:
            return
        self.revision = revision
        self._packet = encode_publish(ADVICE_TOPIC.encode(), document)
        self._lapses_at_s = self._clock() + self._advice.lifetime_s

    def current(self) -> Advice | None:
        if self._advice is not None and self._clock() >= self._lapses_at_s:
            self.revision, self._advice = 0, None
        return self._advice

    def packet(self) -> bytes:
        """The PUBLISH that advises a device; empty where nothing is in force."""
        return self._packet if self.current() is not None else b""
