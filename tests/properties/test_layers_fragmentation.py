"""Layers take the wire in pieces of any size, say the same whatever the pieces, and survive whatever else comes."""

import ssl
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from certificates import Authority
from tidegate.gateway.identity.verdicts import Certificate
from tidegate.gateway.layers.layer import Layer, Peer
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.proxy import BODY_BYTES_MAX, PREFIX_BYTES, SIGNATURE, ProxyHeader, encode_header
from tidegate.gateway.layers.tls import Tls, context_of
from tidegate.gateway.layers.websocket import WebSocket

LARGE = 100_000
ports = st.integers(0, 65_535)
addresses = st.tuples(st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str), ports)
peers = st.builds(
    Peer,
    address=addresses,
    tls=st.none() | st.sampled_from(["TLSv1.2", "TLSv1.3"]),
    certificate=st.none() | st.builds(Certificate, common_name=st.none() | st.text(max_size=64)),
)
messages = st.lists(st.binary(min_size=1, max_size=300) | st.just(bytes(20_000)), max_size=8)
junk = st.binary(max_size=300)
cuts = st.lists(st.integers(1, 700), max_size=30)


def pieces(wire: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        yield wire[:size]
        wire = wire[size:]
    yield wire


def received(layer: Layer, wire: bytes, sizes: list[int]) -> bytes:
    return b"".join(layer.receive(piece) for piece in pieces(wire, sizes))


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The gateway's and the client's."""
    with TemporaryDirectory() as directory:
        authority = Authority(Path(directory))
        certificate, key = authority.sign("gateway")
        server = context_of(Listener(port=8883, certificate=certificate, key=key))
        return server, ssl.create_default_context(cafile=authority.certificate)


@settings(max_examples=50)
@given(peer=peers, destination=addresses, rest=st.binary(max_size=50), sizes=cuts)
def test_a_header_that_is_written_can_be_read(
    peer: Peer, destination: tuple[str, int], rest: bytes, sizes: list[int]
) -> None:
    layer = ProxyHeader()
    assert received(layer, encode_header(peer, destination) + rest, sizes) == rest
    assert layer.problem == ""
    read = layer.describe(Peer(address=("balancer", 1))).address
    assert read[1] == peer.address[1]
    if peer.address[0].count(".") == 3:
        assert read == peer.address


@settings(max_examples=50)
@given(wire=st.binary(max_size=200) | st.binary(max_size=5_000).map(lambda end: SIGNATURE + end), sizes=cuts)
def test_whatever_comes_first_is_a_header_or_refused(wire: bytes, sizes: list[int]) -> None:
    """The same verdict whole and in pieces; and an answer is never waited for longer than a header can be."""
    whole, cut = ProxyHeader(), ProxyHeader()
    assert whole.receive(wire) == received(cut, wire, sizes)
    assert whole.problem == cut.problem
    more = bytes(PREFIX_BYTES + BODY_BYTES_MAX + 1)
    assert whole.problem or whole.receive(more) or whole.problem


@settings(max_examples=50)
@given(said=messages, answered=messages, sizes=cuts)
def test_tls_carries_the_same_whatever_the_pieces(said: list[bytes], answered: list[bytes], sizes: list[int]) -> None:
    server, trusting = contexts()
    layer, inwards, outwards = Tls(server), ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(inwards, outwards, server_hostname="localhost")
    for _ in range(2):
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            received(layer, outwards.read(), sizes)
            inwards.write(layer.answer())
    for message in said:
        client.write(message)
    assert received(layer, outwards.read(), sizes) == b"".join(said)
    inwards.write(layer.answer() + b"".join(layer.send(message) for message in answered) + layer.farewell())
    heard = b""
    while part := client.read(LARGE):
        heard += part
    assert heard == b"".join(answered)


@settings(max_examples=50)
@given(said=messages, answered=messages, sizes=cuts)
def test_a_websocket_carries_the_same_whatever_the_pieces(
    said: list[bytes], answered: list[bytes], sizes: list[int]
) -> None:
    layer = WebSocket(LARGE)
    client = ClientProtocol(parse_uri("ws://localhost/mqtt"), subprotocols=[Subprotocol("mqtt")])
    client.send_request(client.connect())
    assert received(layer, b"".join(client.data_to_send()), sizes) == b""
    client.receive_data(layer.answer())
    client.events_received()
    for message in said:
        client.send_binary(message)
        client.send_ping(b"")
    assert received(layer, b"".join(client.data_to_send()), sizes) == b"".join(said)
    client.receive_data(layer.answer())
    assert len(client.events_received()) == len(said), "each ping has its answer"
    for message in answered:
        client.receive_data(layer.send(message))
    assert [bytes(frame.data) for frame in client.events_received()] == answered  # type: ignore[union-attr]


HEAD = (
    b"GET /mqtt HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
)
frames = st.tuples(
    st.sampled_from([0x00, 0x01, 0x02, 0x80, 0x82, 0x88, 0x89, 0x8A, 0x83, 0xC2]), st.binary(max_size=40)
)


def masked(frame: tuple[int, bytes]) -> bytes:
    return bytes((frame[0], 0x80 | len(frame[1]), 0, 0, 0, 0)) + frame[1]


@settings(max_examples=50)
@given(
    wire=junk
    | junk.map(lambda end: HEAD + end)
    | st.lists(frames, max_size=12).map(lambda made: HEAD + b"".join(map(masked, made))),
    sizes=cuts,
)
def test_whatever_a_websocket_gets_has_the_same_outcome_in_pieces(wire: bytes, sizes: list[int]) -> None:
    whole, cut = WebSocket(LARGE), WebSocket(LARGE)
    assert whole.receive(wire) == received(cut, wire, sizes)
    assert (whole.problem, whole.ended) == (cut.problem, cut.ended)
    assert whole.answer().partition(b"\r\n\r\n")[2] == cut.answer().partition(b"\r\n\r\n")[2]
    if whole.problem or whole.ended:
        assert (whole.receive(HEAD), whole.send(b"x"), whole.farewell()) == (b"", b"", b"")


@settings(max_examples=50)
@given(
    wire=st.binary(max_size=300) | st.binary(max_size=300).map(lambda end: b"\x16\x03\x01\x00\xf0\x01" + end),
    sizes=cuts,
)
def test_whatever_tls_gets_is_refused_or_waited_for(wire: bytes, sizes: list[int]) -> None:
    layer = Tls(contexts()[0])
    assert received(layer, wire, sizes) == b""
    assert layer.send(b"secret") == b""
    assert layer.farewell() == b""
