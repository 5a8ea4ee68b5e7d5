"""Readings by HTTP: acknowledged, advised, or refused with a reason; and who may send them."""

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterator

import pytest
from support import bus
from support.clients import CONNACK, connected, is_closed, received
from support.credentials import password, settled
from support.gateways import Running
from support.readings import READING, TOKEN, basic, own, post
from support.waiting import until

from certificates import Authority
from tidegate.bus import identity
from tidegate.bus.documents import ACCESS, REVOKED
from tidegate.gateway import http_connections
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.identity import Access, Application, AppliedAccess, Patterns
from tidegate.model.installation import Installation
from tidegate.model.registration import Revocation, shard_of
from tidegate.mqtt.client import encode_connect

pytestmark = pytest.mark.live
BRIDGE = Application(name="bridge", speaks_for=("web-*",))


@pytest.fixture(scope="module")
def judging(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway as it is by default, but for one application and a listener with TLS."""
    state = tmp_path_factory.mktemp("http")
    settled(installation, state)
    certificate, key = Authority(state).sign("gateway")
    https = Listener(port=0, protocol="http", certificate=certificate, key=key)
    settings = GatewaySettings(name="http", connections_max=500, enforce_advice=False, http_timeout_s=3.0)
    chosen = IdentitySettings(applications=(BRIDGE,))
    with Running(installation, settings, identity=chosen, listeners={"https": https}) as gateway:
        gateway.wait_for_keys()
        yield gateway


def test_a_reading_by_http_is_acknowledged_and_advised(judging: Running) -> None:
    judging.advise(7.5)
    with connected(judging.here, "http-listener") as listener:
        listener.subscribed(("telemetry/web-1", 1))
        status, text, headers = post(judging.http, "web-1", own(judging.here, "web-1"))
        assert (status, text) == (204, "")
        assert headers["tidegate-interval-s"] == "7.5"
        assert 30 < float(headers["tidegate-lifetime-s"]) <= 60
        until(lambda: listener.heard == [("telemetry/web-1", READING)])


def test_a_password_alone_is_that_of_the_device_in_the_address(judging: Running) -> None:
    bearer = f"Bearer {password(judging.here, 'web-1')}"
    assert post(judging.http, "web-1", bearer).status == 204
    assert post(judging.http, "web-2", bearer).status == 401


def test_an_edge_gateway_speaks_for_its_devices_and_for_no_others(judging: Running) -> None:
    bridge = own(judging.here, "bridge")
    assert [post(judging.http, device, bridge).status for device in ("web-1", "web-9", "pump-1")] == [204, 204, 403]


@pytest.mark.parametrize(
    ("shown", "device", "status", "reason"),
    [
        pytest.param(None, "web-1", 401, "no known credentials", id="nothing is shown"),
        pytest.param(f"Bearer {TOKEN}", "web-1", 401, "no known credentials", id="the operator's token"),
        pytest.param(basic("web-1", TOKEN), "web-1", 401, "no known credentials", id="that token as a password"),
        pytest.param(basic("web-1", "tg1.k.1.x"), "web-1", 401, "wrong credentials", id="a wrong password"),
        pytest.param(basic("nobody", "tg1.k.1.x"), "web-1", 401, "wrong credentials", id="somebody nobody has added"),
        pytest.param("Basic ???", "web-1", 401, "no known credentials", id="what is no base64"),
        pytest.param("Digest x", "web-1", 401, "no known credentials", id="another scheme"),
        pytest.param("own", "web-2", 403, "not its own topic", id="another device's name"),
        pytest.param("own", "web%231", 400, "HTTP 400", id="a name that is no topic level"),
        pytest.param("own", "%2A", 400, "HTTP 400", id="a name that is a wildcard"),
    ],
)
def test_who_may_not_send_is_told_so_and_counted(
    judging: Running, shown: str | None, device: str, status: int, reason: str
) -> None:
    before = judging.refused(reason)
    answer = post(judging.http, device, own(judging.here, "web-1") if shown == "own" else shown)
    assert (answer.status, answer.text.count("\n")) == (status, 1)
    assert answer.headers.get("www-authenticate") == ('Basic realm="tidegate", Bearer' if status == 401 else None)
    assert judging.refused(reason) == before + 1


def test_no_answer_tells_which_names_there_are(judging: Running) -> None:
    answers = [post(judging.http, "web-1", basic(name, "tg1.k.1.x")) for name in ("web-1", "bridge", "nobody")]
    assert len({(answer.status, answer.text) for answer in answers}) == 1


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        pytest.param(b"warm", 400, "not a reading", id="no JSON"),
        pytest.param(b'{"value": 1, "boot": 1}', 400, "boot and seq", id="half an identity"),
        pytest.param(bytes(70_000), 413, "too large", id="a body that is too large"),
    ],
)
def test_a_bad_reading_is_told_why(judging: Running, body: bytes, status: int, words: str) -> None:
    answer = post(judging.http, "web-1", own(judging.here, "web-1"), body)
    assert (answer.status, answer.text.count("\n")) == (status, 1)
    assert words in answer.text


def test_who_is_revoked_is_refused_with_its_next_request(judging: Running) -> None:
    here, shard = judging.here, shard_of("web-gone")
    assert post(judging.http, "web-gone", own(here, "web-gone")).status == 204
    with bus.ControlBus(here) as told:
        told.put(REVOKED, {"web-gone": Revocation(2, 0.0)}, shard)
        identity.tell_shard(told, shard)
    until(lambda: post(judging.http, "web-gone", own(here, "web-gone")).status == 403, 5.0)
    assert post(judging.http, "web-gone", own(here, "web-gone", 2)).status == 204
    assert post(judging.http, "web-1", own(here, "web-1")).status == 204


def test_other_access_counts_with_the_next_request(judging: Running) -> None:
    narrow = Access(devices=Patterns(publishes=("telemetry/{device}/only",)))
    bus.put(judging.here, ACCESS, AppliedAccess(access=narrow, name="narrow", applied_at_s=time.time()))
    until(lambda: post(judging.http, "web-1", own(judging.here, "web-1")).status == 403, 5.0)
    bus.delete(judging.here, ACCESS)
    until(lambda: post(judging.http, "web-1", own(judging.here, "web-1")).status == 204, 5.0)


def test_connections_of_a_device_do_not_count_against_its_requests(judging: Running) -> None:
    words = password(judging.here, "web-1")
    with contextlib.ExitStack() as opened:
        for number in range(8):
            packet = encode_connect(f"many-{number}", user="web-1", password=words)
            assert received(opened.enter_context(judging.raw(packet)), 4) == CONNACK
        assert post(judging.http, "web-1", own(judging.here, "web-1")).status == 204


def test_only_the_broker_could_know_who_that_is(running: Running) -> None:
    here = running.here
    answer = post(running.http, "web-1", basic(here.mqtt_user, here.mqtt_password))
    assert (answer.status, answer.text.count("\n")) == (401, 1)
    assert "Only the broker can tell" in answer.text


# -- connections that keep others out


def test_silent_connections_keep_nobody_out_and_are_closed(judging: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "HEADERS_S", 0.5)
    monkeypatch.setattr(http_connections, "CONNECTIONS_MAX", 200)
    silent = [socket.create_connection(judging.http, timeout=15) for _ in range(300)]
    shown = own(judging.here, "web-1")
    try:
        silent[-1].sendall(b"POST /v1/telemetry/slow HTTP/1.1\r\nHost: x\r\n")
        assert post(judging.http, "web-1", shown).status == 204
        assert all(is_closed(connection) for connection in (silent[0], silent[-2], silent[-1]))
        assert post(judging.http, "web-1", shown).status == 204
    finally:
        for connection in silent:
            connection.close()
    until(lambda: judging.gateway.gate.http_connections == 0)


def test_a_handshake_that_stalls_is_closed_like_silence(judging: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "HEADERS_S", 0.5)
    began_s = time.monotonic()
    with judging.raw(listener="https") as silent, judging.raw(b"\x16\x03\x01\x02\x00", listener="https") as half:
        assert is_closed(silent)
        assert is_closed(half)
    assert time.monotonic() - began_s < 5
    before = judging.refused("TLS handshake failed")
    with judging.raw(b"POST / HTTP/1.1\r\n\r\n", listener="https") as plain:
        plain.recv(100)
    assert judging.refused("TLS handshake failed") == before + 1


def test_connections_by_http_and_by_mqtt_share_their_bound(running: Running) -> None:
    with Running(running.here, GatewaySettings(name="few", connections_max=3)) as few, contextlib.ExitStack() as opened:
        for _ in range(3):
            opened.enter_context(socket.create_connection(few.http, timeout=15))
        until(lambda: few.gateway.gate.http_connections == 3)
        with few.raw(few.connect_packet("comes")) as beyond:
            assert received(beyond, 4) == b"\x20\x02\x00\x00", "a silent one by HTTP gives way to MQTT"
            until(lambda: few.gateway.gate.http_connections == 2)
            assert post(few.http, "web-1", None).status == 401, "and to another one by HTTP"
        with contextlib.ExitStack() as all_known:
            for number in range(3):
                packet = few.connect_packet(f"known-{number}")
                assert received(all_known.enter_context(few.raw(packet)), 4) == b"\x20\x02\x00\x00"
            with few.raw() as one_too_many:
                assert is_closed(one_too_many), "but nobody who is known does"
        assert few.refused("too many connections") == 1


def test_an_address_has_its_share_by_http_as_well(running: Running) -> None:
    settings = GatewaySettings(name="share", address_connections_max=2)
    with Running(running.here, settings) as share, share.raw(), socket.create_connection(share.http, timeout=15):
        until(lambda: share.gateway.gate.http_connections == 1)
        with socket.create_connection(share.http, timeout=15) as beyond:
            assert is_closed(beyond, 3.0), "before its silence is over"
        assert share.refused("too many of one address") == 1


def test_a_body_that_trickles_ends_in_time(judging: Running) -> None:
    head = f"POST /v1/telemetry/web-1 HTTP/1.1\r\nHost: x\r\nAuthorization: {own(judging.here, 'web-1')}\r\n"
    began_s = time.monotonic()
    with socket.create_connection(judging.http, timeout=15) as slow:
        slow.sendall(f"{head}Content-Length: 30\r\n\r\n".encode())
        slow.settimeout(0.5)
        answer = b""
        while not answer and time.monotonic() - began_s < 10:
            with contextlib.suppress(TimeoutError):
                slow.sendall(b" ")
                answer = slow.recv(1_000)
    assert answer.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began_s < 6


def test_a_head_without_end_is_not_read_to_its_end(judging: Running) -> None:
    before = judging.refused("packet too large")
    with socket.create_connection(judging.http, timeout=15) as endless:
        endless.sendall(b"POST / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            for number in range(1_000):
                endless.sendall(f"x-{number}: {'y' * 1_000}\r\n".encode())
        assert is_closed(endless)
    assert judging.refused("packet too large") == before + 1


def test_http_speaks_tls_as_well(judging: Running) -> None:
    mistrusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    mistrusting.check_hostname, mistrusting.verify_mode = False, ssl.CERT_NONE
    bearer = f"Bearer {password(judging.here, 'web-1')}"
    body = json.dumps({"value": 1, "note": "x" * 40_000}).encode()
    for sent in (READING, body):
        assert post(judging.address_of("https"), "web-1", bearer, sent, tls=mistrusting).status == 204


@pytest.mark.parametrize(("name", "body"), [("odd name", READING), ("web-1", b'{"value":1,"x":' + b"[" * 20_000)])
def test_what_a_broker_or_a_parser_would_choke_on_is_refused_and_others_go_on(
    judging: Running, name: str, body: bytes
) -> None:
    """One connection to the broker serves everybody who comes by HTTP: what it hangs up on must not reach it."""
    here = judging.here
    quoted = name.replace(" ", "%20")
    assert post(judging.http, quoted, own(here, name), body).status == 400
    assert post(judging.http, "web-1", own(here, "web-1")).status == 204
