"""The listeners: in which order they are bound, and the sentence for each setting that cannot work."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from certificates import Authority, encrypt
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.listening import Bound, bind
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.errors import UserError
from tidegate.settings.tree import load


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("listeners")
    authority = Authority(directory)
    _, key = authority.sign("gateway")
    authority.sign("other")
    encrypt(key, directory / "encrypted.key")
    (directory / "empty.pem").write_text("nothing\n")
    (directory / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    return directory


@contextlib.contextmanager
def bound(settings: GatewaySettings, *, reuse_port: bool = False) -> Iterator[list[Bound]]:
    listeners = bind(settings, reuse_port=reuse_port)
    try:
        yield listeners
    finally:
        for one in listeners:
            one.sock.close()


def test_every_door_is_bound_in_order(files: Path) -> None:
    secret = Listener(port=0, certificate=str(files / "gateway.pem"), key=str(files / "gateway.key"))
    elsewhere = Listener(port=0, host="127.0.0.2", protocol="websocket")
    with bound(GatewaySettings(listeners=(secret, elsewhere))) as listeners:
        assert [one.listener.protocol for one in listeners] == ["mqtt", "http", "mqtt", "websocket"]
        assert [one.address[0] for one in listeners] == ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"]
        for one in listeners:
            socket.create_connection(one.address, timeout=5).close()


def test_a_port_is_shared_where_that_is_asked_for() -> None:
    with bound(GatewaySettings(), reuse_port=True) as first:
        again = GatewaySettings(port=first[0].address[1])
        with bound(again, reuse_port=True) as second:
            assert second[0].address == first[0].address
        with pytest.raises(UserError):
            bind(again)


def test_a_port_in_use_is_said_and_nothing_stays_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        port, other = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        settings = GatewaySettings(port=other, listeners=(Listener(port=port),))
        with pytest.raises(UserError, match=rf"setting listeners, number 1: 127\.0\.0\.1:{port} is in use: stop"):
            bind(settings)
        socket.create_server(("127.0.0.1", other)).close()


def test_an_address_of_somebody_else_is_said() -> None:
    with pytest.raises(UserError, match=r"setting port: 192\.0\.2\.1:0 cannot be listened on \(.*\): choose another"):
        bind(GatewaySettings(host="192.0.2.1"))


@pytest.mark.parametrize(
    ("certificate", "key", "client_ca", "sentence"),
    [
        ("gateway", None, None, "number 1 has a certificate but no key: TLS takes both"),
        (None, "gateway", None, "number 1 has a key but no certificate: TLS takes both"),
        (None, None, "authority", "number 1 has a client_ca but is not TLS: give"),
        ("missing", "gateway", None, "port 0: the certificate .*missing.pem cannot be read .No such file"),
        ("gateway", "missing", None, "port 0: the key .*missing.key cannot be read .No such file"),
        ("empty", "gateway", None, "port 0: the certificate .*empty.pem holds no certificate in PEM"),
        ("broken", "gateway", None, "port 0: the certificate .*broken.pem or its key .*gateway.key is refused"),
        ("gateway", "other", None, "port 0: the key .*other.key is not that of the certificate .*gateway.pem: give"),
        ("gateway", "encrypted", None, "port 0: the key .*encrypted.key is encrypted .*: decrypt it"),
        ("gateway", "gateway", "missing", "port 0: the client_ca .*missing.pem cannot be read"),
        ("gateway", "gateway", "empty", "port 0: the client_ca .*empty.pem holds no certificate"),
        ("gateway", "gateway", "broken", "port 0: the client_ca .*broken.pem is refused by OpenSSL"),
    ],
)
def test_what_cannot_work_is_one_sentence(
    files: Path, certificate: str | None, key: str | None, client_ca: str | None, sentence: str
) -> None:
    listener = Listener(
        port=0,
        certificate=certificate and str(files / f"{certificate}.pem"),
        key=key and str(files / f"{key}.key"),
        client_ca=client_ca and str(files / f"{client_ca}.pem"),
    )
    with pytest.raises(UserError, match=sentence) as caught:
        bind(GatewaySettings(listeners=(listener,)))
    assert "\n" not in str(caught.value)


def test_http_reads_no_proxy_header() -> None:
    with pytest.raises(UserError, match="number 1 is HTTP, which reads no PROXY header: leave"):
        bind(GatewaySettings(listeners=(Listener(port=0, protocol="http", proxy_protocol=True),)))


def test_the_example_has_one_door_of_each_kind() -> None:
    example = load(Path(__file__).parents[2] / "examples" / "listeners.toml", {}).gateway
    assert [(one.port, one.protocol, one.proxy_protocol) for one in example.listeners] == [
        (8883, "mqtt", False),
        (8443, "websocket", False),
        (8444, "http", False),
        (8884, "mqtt", True),
    ]
