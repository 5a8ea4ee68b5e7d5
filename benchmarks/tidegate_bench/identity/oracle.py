"""What has to happen in a cell, and how a client may hear of it. Written from the documentation (docs/identity.md) and
from MQTT, apart from what is under test: nothing of the gateway is imported here. Pure.
"""

import msgspec

from tidegate_bench.identity.cells import (
    ALIAS,
    ANOTHERS_NAME,
    EDGES,
    EXPIRED,
    OWN_PORT,
    PUBLISH,
    RETAINED,
    REVOKED,
    RIGHT,
    SHARED,
    SPEAKS_FOR,
    SPEAKS_NOT_FOR,
    SPOKEN_FOR,
    SUBSCRIBE,
    WILDCARD,
    WILL,
    WRONG,
    Cell,
)

CLOSED_EARLY, CLOSED = "closed before CONNACK", "closed"
# Where a client is refused, and what it hears of that: before MQTT 5, in MQTT 5, in HTTP.
_TOLD = {
    "handshake": ((CLOSED_EARLY,), (CLOSED_EARLY,), (CLOSED_EARLY,)),
    "connecting": (("CONNACK 4", "CONNACK 5"), ("CONNACK 0x86", "CONNACK 0x87"), ("HTTP 401", "HTTP 403")),
    "will": (("CONNACK 5",), ("CONNACK 0x87",), ()),
    "publishing": ((CLOSED,), ("PUBACK 0x87",), ("HTTP 403",)),
    # Those behind it rely on an alias that is given: without it the connection cannot go on.
    "aliasing": ((), ("PUBACK 0x87", "DISCONNECT 0x87"), ()),
    "subscribing": (("SUBACK 0x80",), ("SUBACK 0x87",), ()),
    "sharing": (("SUBACK 0x80",), ("SUBACK 0x87", "SUBACK 0x9e"), ()),
    # A broker that does not know a client may also hang up.
    "direct": (("CONNACK 4", "CONNACK 5", CLOSED_EARLY), ("CONNACK 0x86", "CONNACK 0x87", CLOSED_EARLY), ()),
}
# None: it is let in, and does what it wants to.
_REFUSED_AT: dict[str, str | None] = {
    RIGHT: None,
    WRONG: "connecting",
    EXPIRED: "connecting",
    REVOKED: "connecting",
    ANOTHERS_NAME: "connecting",
    PUBLISH: "publishing",
    RETAINED: "publishing",
    WILL: "will",
    ALIAS: "aliasing",
    SUBSCRIBE: "subscribing",
    SHARED: "sharing",
    WILDCARD: "subscribing",
    SPEAKS_FOR: None,
    SPEAKS_NOT_FOR: "publishing",
    OWN_PORT: "direct",
}


class Expected(msgspec.Struct, frozen=True):
    """``told``: any of these, where it is not allowed."""

    is_allowed: bool
    told: tuple[str, ...] = ()


def expected(cell: Cell) -> Expected:
    refused_at = _refused_at(cell)
    if refused_at is None:
        return Expected(True)
    before_5, in_5, in_http = _TOLD[refused_at]
    return Expected(False, in_http if cell.transport.layer == "http" else in_5 if cell.five else before_5)


def _refused_at(cell: Cell) -> str | None:
    if cell.method == "broker" and cell.transport.layer == "http":
        return "connecting"  # nobody can ask the broker there
    if cell.shows_certificate and cell.case in (WRONG, EXPIRED):
        return "handshake"  # the listener verifies it
    if cell.shows_certificate and cell.case == ANOTHERS_NAME:
        return "publishing"  # a client's name is in its certificate, whatever it calls itself
    return _REFUSED_AT[cell.case]


def may_speak(sender: str, device: str) -> bool:
    """Whether what stands under a device's topic may come from that sender."""
    return sender == device or (sender in EDGES.values() and device.startswith(SPOKEN_FOR))
