"""TLS without a socket: a client of the standard library on the other side, certificates made for the test."""

import ssl
import warnings
from pathlib import Path

import pytest

from certificates import Authority
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.tls import BROKEN, CHUNK_BYTES, FAILED, NO_CERTIFICATE, Tls, context_of

PEER = Peer(address=("192.0.2.7", 50_000))


class Client:
    """The other end: a TLS client whose wire is two buffers."""

    def __init__(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        self.ended = False
        self._from_server, self._to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._from_server, self._to_server, server_hostname="localhost", session=session)

    def said(self) -> bytes:
        return self._to_server.read()

    def says(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self.said()

    def hears(self, wire: bytes) -> bytes:
        self._from_server.write(wire)
        heard = b""
        while self._from_server.pending and not self.ended:
            part = self.tls.read(65_536)
            heard, self.ended = heard + part, not part
        return heard

    def shake_hands(self, layer: Tls) -> None:
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                assert layer.receive(self.said()) == b""
                self._from_server.write(layer.answer())
        assert layer.receive(self.said()) == b""
        self._from_server.write(layer.answer())

    def shake_hands_and_read(self, layer: Tls) -> None:
        """As of version 1.3 a client learns only now that it was refused."""
        self.shake_hands(layer)
        self.tls.read(1)


class Place:
    """What listener and client need to trust each other."""

    def __init__(self, directory: Path) -> None:
        authority = Authority(directory)
        self.certificate, self.key = authority.sign("gateway")
        self.device = authority.sign("pump-7")
        self.stranger = Authority(directory, "elsewhere").sign("stranger")
        self.ca = str(authority.certificate)

    def server(self, **more: str) -> ssl.SSLContext:
        return context_of(Listener(port=8883, certificate=self.certificate, key=self.key, **more))  # type: ignore[arg-type]

    def client(self, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if certificate:
            context.load_cert_chain(*certificate)
        return context


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_pass_both_ways(place: Place, version: ssl.TLSVersion) -> None:
    context = place.client()
    context.maximum_version = version
    layer, client = Tls(place.server()), Client(context)
    assert layer.send(b"too early") == b""
    client.shake_hands(layer)
    assert layer.receive(client.says(b"CONNECT")) == b"CONNECT"
    assert client.hears(layer.send(b"CONNACK")) == b"CONNACK"
    large = bytes(range(256)) * (CHUNK_BYTES // 64)
    assert layer.receive(client.says(large)) == large
    assert client.hears(layer.send(large)) == large
    assert layer.receive(client.says(b"one") + client.says(b"two")) == b"onetwo"
    assert (layer.problem, layer.ended, layer.answer()) == ("", False, b"")
    assert layer.describe(PEER) == Peer(address=PEER.address, tls=version.name.replace("_", "."))


def test_what_comes_with_the_end_of_the_handshake_is_not_lost(place: Place) -> None:
    layer, client = Tls(place.server()), Client(place.client())
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.do_handshake()
    layer.receive(client.said())
    client._from_server.write(layer.answer())
    client.tls.do_handshake()
    assert layer.receive(client.said() + client.says(b"CONNECT")) == b"CONNECT"


def test_a_client_certificate_says_who_it_is(place: Place) -> None:
    layer, client = Tls(place.server(client_ca=place.ca)), Client(place.client(place.device))
    client.shake_hands(layer)
    described = layer.describe(PEER)
    assert (described.address, described.tls) == (PEER.address, "TLSv1.3")
    assert described.certificate is not None
    assert described.certificate.common_name == "pump-7"


@pytest.mark.parametrize("which", ["none", "stranger"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_must_show_a_certificate_and_does_not_is_refused(place: Place, which: str, version: ssl.TLSVersion) -> None:
    context = place.client(place.stranger if which == "stranger" else None)
    context.maximum_version = version
    layer, client = Tls(place.server(client_ca=place.ca)), Client(context)
    with pytest.raises(ssl.SSLError, match="ALERT"):
        client.shake_hands_and_read(layer)
    assert layer.problem == NO_CERTIFICATE
    assert layer.receive(b"more") == b""
    assert (layer.send(b"x"), layer.farewell()) == (b"", b"")


def test_who_speaks_no_tls_is_refused(place: Place) -> None:
    layer = Tls(place.server())
    assert layer.receive(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04name") == b""
    assert layer.problem == FAILED


def test_a_client_that_does_not_trust_the_gateway_goes(place: Place) -> None:
    layer, client = Tls(place.server()), Client(ssl.create_default_context(cafile=place.stranger[0]))
    with pytest.raises(ssl.SSLCertVerificationError):
        client.shake_hands(layer)
    layer.receive(client.said())
    assert layer.problem == FAILED


def test_old_versions_are_refused(place: Place) -> None:
    context = place.client()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    layer, client = Tls(place.server()), Client(context)
    with pytest.raises(ssl.SSLError):
        client.shake_hands(layer)
    assert layer.problem == FAILED


def test_a_record_that_was_tampered_with_ends_it(place: Place) -> None:
    layer, client = Tls(place.server()), Client(place.client())
    client.shake_hands(layer)
    good, bad = client.says(b"good"), bytearray(client.says(b"bad"))
    bad[-1] ^= 1
    assert layer.receive(good + bytes(bad)) == b"good"
    assert layer.problem == BROKEN
    assert layer.answer() != b"", "an alert"
    assert (layer.send(b"x"), layer.farewell()) == (b"", b"")


def test_both_sides_say_farewell(place: Place) -> None:
    layer, client = Tls(place.server()), Client(place.client())
    client.shake_hands(layer)
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert layer.receive(client.said() + b"and more") == b""
    assert (layer.ended, layer.problem) == (True, "")
    assert layer.receive(b"whatever") == b""
    answered = layer.send(b"still answered")
    assert client.hears(answered) == b"still answered"
    with pytest.raises(ssl.SSLZeroReturnError):
        client.hears(layer.farewell())
    assert (layer.farewell(), layer.send(b"x")) == (b"", b"")


def test_the_gateway_may_be_the_first_to_go(place: Place) -> None:
    layer, client = Tls(place.server()), Client(place.client())
    client.shake_hands(layer)
    client.hears(layer.farewell())
    assert client.ended
    assert layer.receive(client.says(b"late")) == b""


def test_sessions_are_resumed(place: Place) -> None:
    server, context = place.server(client_ca=place.ca), place.client(place.device)
    layer, first = Tls(server), Client(context)
    first.shake_hands(layer)
    first.hears(layer.send(b"the ticket comes before this"))
    layer, again = Tls(server), Client(context, first.tls.session)
    again.shake_hands(layer)
    assert again.tls.session_reused
    assert (shown := layer.describe(PEER).certificate) is not None
    assert shown.common_name == "pump-7"


@pytest.mark.parametrize(
    ("protocol", "offered", "chosen"),
    [("mqtt", ["mqtt"], "mqtt"), ("mqtt", ["h2"], None), ("websocket", ["h2", "http/1.1"], "http/1.1")],
)
def test_the_application_protocol_is_agreed_on_where_it_is_asked_for(
    place: Place, protocol: str, offered: list[str], chosen: str | None
) -> None:
    context = place.client()
    context.set_alpn_protocols(offered)
    client = Client(context)
    client.shake_hands(Tls(place.server(protocol=protocol)))
    assert client.tls.selected_alpn_protocol() == chosen
