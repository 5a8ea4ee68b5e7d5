"""Every way to prove who one is, by HTTP: the same methods as by MQTT, and none of them delays who does not need it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
import pytest
from support.clients import connected
from support.credentials import settled
from support.gateways import Running
from support.listening import trusting
from support.readings import READING, basic, own, post
from support.waiting import until

from certificates import Authority
from tidegate.gateway.identity.hashing import hashed
from tidegate.gateway.identity.settings import (
    FileSettings,
    HttpSettings,
    IdentitySettings,
    JwtSettings,
)
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.identity import Application
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live
SECRET = "s" * 40
SLOW_S = 1.5


class _Service(BaseHTTPRequestHandler):
    """Knows ``web-service`` by its password, and thinks for long."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(SLOW_S)
        is_right = (asked["user"], asked["password"]) == ("web-service", "right")
        answer = json.dumps({"name": "web-service"}).encode() if is_right else b"{}"
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/who"
        finally:
            server.shutdown()
            serving.join()


class Methods:
    """A gateway that knows all methods, and those whom it knows by each."""

    def __init__(self, here: Installation, state: Path, url: str) -> None:
        authority = Authority(state)
        certificate, key = authority.sign("gateway")
        self.device = authority.sign("web-cert")
        self.ca = str(authority.certificate)
        (state / "passwords").write_text(f"web-file:{hashed(b'right').text()}\n")
        (state / "secret").write_text(SECRET)
        identity = IdentitySettings(
            methods=("derived", "certificate", "jwt", "file", "http"),
            file=FileSettings(path=str(state / "passwords")),
            jwt=JwtSettings(secret=str(state / "secret"), algorithms=("HS256",)),
            http=HttpSettings(url=url, timeout_s=4.0),
            applications=(Application(name="bridge", speaks_for=("web-cert-*",), methods=("certificate",)),),
        )
        listeners = {"https": Listener(port=0, protocol="http", certificate=certificate, key=key, client_ca=self.ca)}
        self.bridge = authority.sign("bridge")
        settled(here, state)
        self.gateway = Running(here, GatewaySettings(name="methods"), identity=identity, listeners=listeners)


@pytest.fixture(scope="module")
def methods(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Methods]:
    with service() as url:
        prepared = Methods(installation, tmp_path_factory.mktemp("methods"), url)
        with prepared.gateway:
            prepared.gateway.wait_for_keys()
            yield prepared


def token(name: str, lasts_s: float = 86_400.0) -> str:
    return "Bearer " + jwt.encode({"sub": name, "exp": time.time() + lasts_s}, SECRET, "HS256")


def test_every_method_knows_its_own_by_http(methods: Methods) -> None:
    gateway = methods.gateway
    with connected(gateway.here, "methods-listener") as listener:
        listener.subscribed(("telemetry/+", 1))
        known = {
            "web-derived": own(gateway.here, "web-derived"),
            "web-file": basic("web-file", "right"),
            "web-jwt": token("web-jwt"),
            "web-service": basic("web-service", "right"),
        }
        for device, shown in known.items():
            assert post(gateway.http, device, shown).status == 204, device
        until(lambda: [topic for topic, _ in listener.heard] == [f"telemetry/{device}" for device in known])


@pytest.mark.parametrize(
    ("shown", "device", "status"),
    [
        pytest.param(basic("web-file", "wrong"), "web-file", 401, id="a wrong password of the file"),
        pytest.param(basic("web-file", "right"), "web-jwt", 403, id="the file's for another device"),
        pytest.param(token("web-jwt"), "web-file", 403, id="a token for another device"),
        pytest.param(token("web-jwt", -60.0), "web-jwt", 401, id="a token that has expired"),
        pytest.param(token("web-jwt")[:-6] + "aaaaaa", "web-jwt", 401, id="a token that nobody has signed"),
        pytest.param(basic("web-service", "wrong"), "web-service", 401, id="whom the service refuses"),
    ],
)
def test_no_method_takes_what_is_wrong(methods: Methods, shown: str, device: str, status: int) -> None:
    assert post(methods.gateway.http, device, shown).status == status


def test_a_certificate_is_who_its_owner_is(methods: Methods) -> None:
    address = methods.gateway.address_of("https")
    device, bridge = trusting(methods.ca, methods.device), trusting(methods.ca, methods.bridge)
    assert post(address, "web-cert", None, tls=device).status == 204
    assert post(address, "web-file", None, tls=device).status == 403
    assert post(address, "web-cert-7", None, tls=bridge).status == 204
    assert post(address, "web-cert", None, tls=bridge).status == 403


def test_a_slow_service_delays_only_who_needs_it(methods: Methods) -> None:
    gateway = methods.gateway
    shown = own(gateway.here, "web-derived")
    with ThreadPoolExecutor(8) as clients:
        slow = [clients.submit(post, gateway.http, "web-slow", basic(f"web-slow-{n}", "?")) for n in range(8)]
        time.sleep(0.1)
        began_s = time.monotonic()
        assert post(gateway.http, "web-derived", shown, READING).status == 204
        assert time.monotonic() - began_s < SLOW_S / 2
        assert not any(one.done() for one in slow)
        assert {one.result().status for one in slow} == {401}
