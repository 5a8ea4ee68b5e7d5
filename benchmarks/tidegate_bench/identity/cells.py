"""The cells of the matrix: every way to prove a name, on every transport, in every case. Pure.

Whatever cannot exist is a cell all the same, with the reason why it is not played.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

METHODS = ("derived", "file", "certificate", "jwt", "http", "broker")
NATS, MOSQUITTO = "NATS", "Mosquitto"
Layer = Literal["plain", "websocket", "tls", "http"]

RIGHT, WRONG, EXPIRED, REVOKED, ANOTHERS_NAME = "right", "wrong", "expired", "revoked", "another's name"
PUBLISH, RETAINED, WILL, ALIAS = "another's topic", "another's topic, retained", "another's topic in a will", "alias"
SUBSCRIBE, SHARED, WILDCARD = "another's topic, subscribed", "shared subscription", "wildcard filter"
SPEAKS_FOR, SPEAKS_NOT_FOR = "speaks for it", "does not speak for it"
OWN_PORT = "the broker's own port"
CASES = (
    *(RIGHT, WRONG, EXPIRED, REVOKED, ANOTHERS_NAME),
    *(PUBLISH, RETAINED, WILL, ALIAS, SUBSCRIBE, SHARED, WILDCARD),
    *(SPEAKS_FOR, SPEAKS_NOT_FOR, OWN_PORT),
)

# An edge gateway connects once for all devices whose names begin like this, and for nobody else. There is one for each
# method: a name that stands in a password file is known by that.
EDGES = {method: f"edge-{method}" for method in METHODS}
SPOKEN_FOR = "spoken-"
# What a reading says of who sent it, where nobody has proven to be the device.
IMPOSTOR = "impostor"

_ONLY_MQTT = {
    RETAINED: "HTTP ingest retains nothing",
    WILL: "HTTP ingest knows no wills",
    ALIAS: "HTTP ingest knows no topic aliases",
    SUBSCRIBE: "HTTP ingest knows no subscriptions",
    SHARED: "HTTP ingest knows no subscriptions",
    WILDCARD: "HTTP ingest knows no subscriptions",
}


class Transport(msgspec.Struct, frozen=True):
    """``version`` of MQTT; 0 where it is none."""

    name: str
    version: int
    layer: Layer


TRANSPORTS = (
    Transport("MQTT 3.1.1", 4, "plain"),
    Transport("MQTT 5", 5, "plain"),
    Transport("WebSocket, MQTT 3.1.1", 4, "websocket"),
    Transport("WebSocket, MQTT 5", 5, "websocket"),
    Transport("TLS, MQTT 3.1.1", 4, "tls"),
    Transport("TLS, MQTT 5", 5, "tls"),
    Transport("HTTP ingest", 0, "http"),
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One client that tries one thing. Its names are nobody else's, so no two cells meet."""

    number: int
    broker: str
    method: str
    transport: Transport
    case: str

    @property
    def client(self) -> str:
        """Who connects."""
        return EDGES[self.method] if self.case in (SPEAKS_FOR, SPEAKS_NOT_FOR) else f"client-{self.number:04d}"

    @property
    def victim(self) -> str:
        """Somebody else: the device in whose name, or about whom, something is tried."""
        return f"{SPOKEN_FOR if self.case == SPEAKS_FOR else 'victim-'}{self.number:04d}"

    @property
    def sender(self) -> str:
        """Who really sends what this cell publishes."""
        return IMPOSTOR if self.case in (WRONG, EXPIRED, REVOKED) else self.client

    @property
    def five(self) -> bool:
        return self.transport.version == 5

    @property
    def shows_certificate(self) -> bool:
        return self.method == "certificate"

    @property
    def not_applicable(self) -> str:
        """Why it cannot be played; nothing where it can."""
        layer = self.transport.layer
        if layer == "http" and self.case in _ONLY_MQTT:
            return _ONLY_MQTT[self.case]
        if self.shows_certificate and layer == "plain":
            return "a certificate is shown in TLS, and here is none"
        if self.case == ALIAS and not self.five:
            return "MQTT 3.1.1 knows no topic aliases"
        if self.case == EXPIRED and self.method == "file":
            return "a line of a password file has no end"
        if self.case == EXPIRED and self.method == "broker":
            return "what the broker knows has no end that a gateway could see"
        return self._no_own_port if self.case == OWN_PORT else ""

    @property
    def _no_own_port(self) -> str:
        if self.transport.layer != "plain":
            return "the broker's own listener is plain MQTT"
        if self.broker == NATS and self.five:
            return "NATS speaks MQTT 3.1.1"
        return "with this method the broker is to know its clients" if self.method == "broker" else ""


def cells() -> list[Cell]:
    return [
        Cell(number=number, broker=broker, method=method, transport=transport, case=case)
        for number, (broker, method, transport, case) in enumerate(_combinations())
    ]


def _combinations() -> Iterator[tuple[str, str, Transport, str]]:
    for method in METHODS:
        for transport in TRANSPORTS:
            for broker in _brokers(method, transport):
                for case in CASES:
                    yield broker, method, transport, case


def _brokers(method: str, transport: Transport) -> tuple[str, ...]:
    """NATS knows gateways alone, and no MQTT 5: a gateway translates there, and passes on at Mosquitto."""
    if method == "broker":
        return (MOSQUITTO,)
    return (NATS, MOSQUITTO) if transport.version == 5 else (NATS,)
