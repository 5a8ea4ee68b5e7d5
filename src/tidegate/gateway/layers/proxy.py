"""The PROXY protocol, version 2: who the client is, said in front of everything else.

Read where a load balancer connects to the gateway, written where a broker wants to know who the gateway speaks for.
"""

import ipaddress
import struct

import msgspec

from tidegate.gateway.layers.layer import Peer

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
VERSION_1 = b"PROXY "
PREFIX_BYTES = 16
# Senders are asked to stay below 536 bytes; certificates' names and the like may take more.
BODY_BYTES_MAX = 4_096

LOCAL, PROXY = 0x20, 0x21
UNSPECIFIED, TCP4, TCP6, UNIX = 0x00, 0x11, 0x21, 0x31
ADDRESS_BYTES = {TCP4: 12, TCP6: 36, UNIX: 216}

TLV_TLS, TLV_TLS_VERSION, TLV_TLS_COMMON_NAME = 0x20, 0x21, 0x22
# Bits of TLV_TLS: the client speaks TLS; it has shown a certificate, on this connection and in this session.
CLIENT_TLS, CLIENT_CERTIFICATE = 0x01, 0x06

BAD = "bad PROXY header"
OLD = "PROXY version 1 is not spoken"

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class ProxyHeader:
    """Takes the header off the front. What follows passes as it is, both ways."""

    __slots__ = ("_client", "_head", "_open", "ended", "problem")

    def __init__(self) -> None:
        self.problem = ""
        self.ended = False
        self._open = False
        self._head = b""
        self._client: tuple[str, int] | None = None

    def receive(self, data: bytes) -> bytes:
        if self._open:
            return data
        if self.problem:
            return b""
        head = self._head = self._head + data
        if not SIGNATURE.startswith(head[: len(SIGNATURE)]):
            self.problem = OLD if VERSION_1.startswith(head[: len(VERSION_1)]) else BAD
        elif len(head) >= PREFIX_BYTES:
            return self._with_prefix(head)
        return b""

    def _with_prefix(self, head: bytes) -> bytes:
        command, family, length = struct.unpack_from("!BBH", head, len(SIGNATURE))
        end = PREFIX_BYTES + length
        if command not in (LOCAL, PROXY) or length > BODY_BYTES_MAX:
            self.problem = BAD
        elif len(head) >= end:
            body = head[PREFIX_BYTES:end]
            # A load balancer that speaks for itself, to see whether we live, may say anything about addresses.
            if command == PROXY and not self._read(family, body):
                self.problem = BAD
                return b""
            self._open, self._head = True, b""
            return head[end:]
        return b""

    def _read(self, family: int, body: bytes) -> bool:
        """Whether the body is in order. A client behind a Unix socket, or one that is not named, keeps the balancer's
        address."""
        if family == UNSPECIFIED:
            return True
        size = ADDRESS_BYTES.get(family)
        if size is None or not _are_tlvs(body, size):
            return False
        if family == TCP4:
            self._client = str(ipaddress.IPv4Address(body[:4])), int.from_bytes(body[8:10], "big")
        elif family == TCP6:
            host = ipaddress.IPv6Address(body[:16])
            self._client = str(host.ipv4_mapped or host), int.from_bytes(body[32:34], "big")
        return True

    def send(self, data: bytes) -> bytes:
        return data

    def answer(self) -> bytes:
        """The protocol has none: the header is all that is said."""
        return b""

    def farewell(self) -> bytes:
        return b""

    def describe(self, peer: Peer) -> Peer:
        return peer if self._client is None else msgspec.structs.replace(peer, address=self._client)


def _are_tlvs(body: bytes, place: int) -> bool:
    """Whether only types, lengths and values follow that place of the body. What they say is passed over."""
    while place + 3 <= len(body):
        place += 3 + int.from_bytes(body[place + 1 : place + 3], "big")
    return place == len(body)


def encode_header(peer: Peer, destination: tuple[str, int]) -> bytes:
    """What to say to a broker first: ``peer`` is the client, ``destination`` where it has connected to."""
    family, addresses = _addresses(peer.address, destination)
    body = addresses + _tls(peer)
    return SIGNATURE + struct.pack("!BBH", PROXY, family, len(body)) + body


def _addresses(source: tuple[str, int], destination: tuple[str, int]) -> tuple[int, bytes]:
    try:
        hosts: list[_Ip] = [ipaddress.ip_address(source[0]), ipaddress.ip_address(destination[0])]
    except ValueError:  # a peer that had gone before it was asked has no address
        return UNSPECIFIED, b""
    family = TCP4 if all(host.version == 4 for host in hosts) else TCP6
    packed = b"".join(host.packed if family == TCP4 else _as_version_6(host) for host in hosts)
    return family, packed + struct.pack("!HH", source[1], destination[1])


def _as_version_6(host: _Ip) -> bytes:
    return host.packed if host.version == 6 else bytes(10) + b"\xff\xff" + host.packed


def _tls(peer: Peer) -> bytes:
    if peer.tls is None:
        return b""
    common_name = peer.certificate.common_name if peer.certificate is not None else None
    shown = CLIENT_CERTIFICATE if peer.certificate is not None else 0
    value = struct.pack("!BI", CLIENT_TLS | shown, 0) + _tlv(TLV_TLS_VERSION, peer.tls)
    if common_name is not None:
        value += _tlv(TLV_TLS_COMMON_NAME, common_name)
    return struct.pack("!BH", TLV_TLS, len(value)) + value


def _tlv(kind: int, text: str) -> bytes:
    value = text.encode()
    return struct.pack("!BH", kind, len(value)) + value
