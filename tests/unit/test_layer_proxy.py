"""The PROXY header, read and written: what is in order, what is refused, and in which words."""

import struct

import pytest

from tidegate.gateway.identity.verdicts import Certificate
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.proxy import BAD, BODY_BYTES_MAX, OLD, SIGNATURE, ProxyHeader, encode_header

BALANCER = Peer(address=("10.0.0.1", 4711))
TCP4_ADDRESSES = bytes([192, 0, 2, 7, 10, 0, 0, 9]) + struct.pack("!HH", 50_000, 1883)
TLV = b"\x05\x00\x03abc"


def header(command: int = 0x21, family: int = 0x11, body: bytes = TCP4_ADDRESSES) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(body)) + body


def address_of(wire: bytes) -> tuple[str, int]:
    layer = ProxyHeader()
    assert layer.receive(wire + b"CONNECT") == b"CONNECT", layer.problem
    assert layer.receive(b"more") == b"more"
    return layer.describe(BALANCER).address


def test_the_address_is_what_the_header_says() -> None:
    assert address_of(header()) == ("192.0.2.7", 50_000)
    assert address_of(header(body=TCP4_ADDRESSES + TLV + b"\x04\x00\x00")) == ("192.0.2.7", 50_000)
    body = bytes.fromhex("20010db8000000000000000000000001") + bytes(16) + struct.pack("!HH", 7, 8)
    assert address_of(header(family=0x21, body=body)) == ("2001:db8::1", 7)


@pytest.mark.parametrize(
    "wire",
    [
        header(command=0x20),
        header(command=0x20, family=0x00, body=b""),
        header(command=0x20, family=0xFF, body=b"whatever"),
        header(family=0x00, body=b"x"),
        header(family=0x31, body=bytes(216)),
    ],
    ids=["local", "local without addresses", "local with anything", "unspecified", "unix"],
)
def test_where_it_says_nothing_the_address_is_the_balancers(wire: bytes) -> None:
    assert address_of(wire) == BALANCER.address


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        (b"PROXY TCP4 192.0.2.7 10.0.0.9 50000 1883\r\n", OLD),
        (b"\x10\x10\x00\x04MQTT", BAD),
        (b"\x16\x03\x01", BAD),
        (SIGNATURE[:-1] + b"X", BAD),
        (header(command=0x11), BAD),
        (header(command=0x22), BAD),
        (header(family=0x12), BAD),
        (header(family=0x41), BAD),
        (header(body=TCP4_ADDRESSES[:-1]), BAD),
        (header(family=0x21), BAD),
        (header(body=TCP4_ADDRESSES + TLV[:-1]), BAD),
        (header(body=TCP4_ADDRESSES + b"\x05\x00"), BAD),
        (SIGNATURE + struct.pack("!BBH", 0x21, 0x11, BODY_BYTES_MAX + 1), BAD),
    ],
    ids=[
        "version 1", "MQTT", "TLS", "signature", "version", "command", "datagrams", "family", "short addresses",
        "addresses of the other family", "short TLV", "half a TLV", "endless",
    ],
)  # fmt: skip
def test_what_is_not_in_order_is_refused(wire: bytes, problem: str) -> None:
    layer = ProxyHeader()
    assert layer.receive(wire) == b""
    assert layer.problem == problem
    assert layer.receive(header()) == b"", "nothing makes it good again"


def test_half_a_header_is_waited_for() -> None:
    layer, wire = ProxyHeader(), header()
    for place in range(len(wire)):
        assert layer.receive(wire[place : place + 1]) == b""
        assert layer.problem == ""
    assert layer.receive(b"CONNECT") == b"CONNECT"


@pytest.mark.parametrize(
    ("source", "destination", "read"),
    [
        (("192.0.2.7", 50_000), ("10.0.0.9", 1883), ("192.0.2.7", 50_000)),
        (("2001:db8::1", 50_000), ("2001:db8::2", 1883), ("2001:db8::1", 50_000)),
        (("192.0.2.7", 50_000), ("::1", 1883), ("192.0.2.7", 50_000)),
        (("", 0), ("10.0.0.9", 1883), BALANCER.address),
    ],
    ids=["version 4", "version 6", "both", "unknown"],
)
def test_what_is_written_can_be_read(
    source: tuple[str, int], destination: tuple[str, int], read: tuple[str, int]
) -> None:
    peer = Peer(address=source, tls="TLSv1.3", certificate=Certificate(common_name="pump-7"))
    assert address_of(encode_header(peer, destination)) == read


def test_the_broker_is_told_whose_certificate_it_was() -> None:
    """Byte by byte: client bits, verified, version, common name."""
    address = ("192.0.2.7", 50_000)
    plain = encode_header(Peer(address=address), ("10.0.0.9", 1883))
    assert plain == header()
    secret = encode_header(Peer(address=address, tls="TLSv1.3"), ("10.0.0.9", 1883))
    assert secret.endswith(TCP4_ADDRESSES + b"\x20\x00\x0f\x01\x00\x00\x00\x00\x21\x00\x07TLSv1.3")
    known = encode_header(
        Peer(address=address, tls="TLSv1.3", certificate=Certificate(common_name="pump-7")), ("10.0.0.9", 1883)
    )
    assert known.endswith(b"\x20\x00\x18\x07\x00\x00\x00\x00\x21\x00\x07TLSv1.3\x22\x00\x06pump-7")
