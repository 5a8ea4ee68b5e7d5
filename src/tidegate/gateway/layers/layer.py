"""What every layer can do, and what is known of who is at the other end of a connection."""

import asyncio
from typing import Protocol

import msgspec

from tidegate.gateway.identity.verdicts import Certificate


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who a connection comes from: behind a load balancer, the client that it speaks for."""

    address: tuple[str, int]
    tls: str | None = None  # the version, where the client speaks TLS with the gateway
    certificate: Certificate | None = None  # that the client has shown, verified


class Layer(Protocol):
    """One layer of one connection. ``receive`` may be given the wire's bytes in pieces of any size."""

    problem: str  # why the connection has to end, in words that are counted; "" while all is well
    ended: bool  # no more is received: the peer has said so in the layer's own way, or the layer has said farewell

    def receive(self, data: bytes) -> bytes:
        """What the bytes from the wire carry."""

    def send(self, data: bytes) -> bytes:
        """The bytes for the wire that carry these. Nothing before the layer is open, or after it has ended."""

    def answer(self) -> bytes:
        """What the layer itself has to say to its peer now, as bytes for the wire. Said once."""

    def farewell(self) -> bytes:
        """Bytes for the wire that end the layer politely."""

    def describe(self, peer: Peer) -> Peer:
        """The peer, with what this layer knows about it."""


PEER = "tidegate_peer"


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Who is at the other end of a connection, be there layers or none."""
    peer = transport.get_extra_info(PEER)
    return peer if isinstance(peer, Peer) else peer_of_socket(transport)


def peer_of_socket(transport: asyncio.BaseTransport) -> Peer:
    name = transport.get_extra_info("peername")  # None if the peer has gone already
    return Peer(address=(name[0], name[1]) if name else ("", 0))
