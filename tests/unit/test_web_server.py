"""The server, asked over real connections: who is let in, what the API answers, how it starts and stops."""

import asyncio
import base64
import gc
import http.client
import json
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tidegate.model.clients import DeviceReport
from tidegate.model.credentials import Key, password_of
from tidegate.model.decisions import Mode
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.first_reading import FirstReading
from tidegate.model.registration import Entry
from tidegate.model.view import ChainStates, IdentityState, Sample, View
from tidegate.web.server import serve

TOKEN = "tide-secret-token"
PASSWORD = "tg1.k1.1.secret-of-hello"
SAMPLE = Sample(
    at_s=100.0,
    age_s=0.4,
    arrival_per_s=200.0,
    departure_per_s=200.0,
    waiting=0,
    devices=100,
    interval_s=0.0,
    capacity_per_s=None,
    phase="idle",
)
JSON = {"Authorization": f"Bearer {TOKEN}"}


class Installation:
    """A view that keeps the mode it is given."""

    def __init__(self) -> None:
        self.mode = Mode()
        self.samples: tuple[Sample, ...] = (SAMPLE,)

    def view(self) -> View:
        return View(
            name="x",
            controller="c1",
            leader="c1",
            mode=self.mode,
            samples=self.samples,
            decisions=(),
            chain=ChainStates(),
            identity=IdentityState(registered=2, key_id="k1"),
        )

    async def set_mode(self, changes: Mapping[str, object]) -> Mode:
        self.mode = self.mode.with_changes(changes)
        return self.mode

    def first_reading(self) -> FirstReading:
        return FirstReading(device="hello", password=PASSWORD, mqtt=("127.0.0.1", 1), http=None)

    async def look_up(self, name: str) -> DeviceReport:
        if name == "away":
            raise BrokerUnavailableError("No broker answers: check that it runs.")
        return DeviceReport(name=name, entry=Entry())


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()


Ask = Callable[..., Awaitable[Answer]]


def served(use: Callable[[Ask, Installation], Awaitable[None]], port: int = 0, token: str = TOKEN) -> None:
    """Run ``use`` against a server of its own."""

    async def main() -> None:
        stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
        installation = Installation()
        serving = asyncio.create_task(
            serve(
                installation.view,
                installation.set_mode,
                host="127.0.0.1",
                port=port,
                token=token,
                stop=stop,
                ready=address.set_result,
                first_reading=installation.first_reading,
                look_up=installation.look_up,
            )
        )
        await asyncio.wait({serving, address}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        if serving.done():
            await serving

        async def ask(path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
            return await asyncio.to_thread(_request, address.result(), method, path, body, headers)

        try:
            await use(ask, installation)
        finally:
            stop.set()
            await asyncio.wait_for(serving, 20)

    # NiceGUI looks for its server among all objects there are, and trips over those that other tests left behind.
    gc.collect()
    asyncio.run(main())


def _request(address: tuple[str, int], method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
    connection = http.client.HTTPConnection(*address, timeout=20)
    try:
        connection.request(method, path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


PATHS = [
    "/",
    "/api/view",
    "/api/decisions",
    "/api/devices/a",
    "/metrics",
    "/favicon.ico",
    "/_nicegui_ws/socket.io/",
    "/nowhere",
]


def test_nothing_is_answered_without_the_token(caplog: pytest.LogCaptureFixture) -> None:
    async def use(ask: Ask, _: Installation) -> None:
        for path in PATHS:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}, {"Cookie": "x=y"}):
                answer = await ask(path, **headers)
                assert answer.status == 401, path
                assert "installation.json" in answer.text
        assert (await ask("/?token=wrong")).status == 401
        assert (await ask("/api/view?token=" + "é".encode().hex())).status == 401

    with caplog.at_level(logging.DEBUG):
        served(use)
    assert TOKEN not in caplog.text


def test_a_devices_password_opens_nothing_here() -> None:
    words = password_of(Key(id="k1", secret=bytes(32)), "pump-1", 1)
    pair = base64.b64encode(f"pump-1:{words}".encode()).decode()

    async def use(ask: Ask, installation: Installation) -> None:
        before = installation.mode
        for shown in (f"Bearer {words}", f"Basic {pair}"):
            assert (await ask("/api/view", Authorization=shown)).status == 401
            assert (await ask("/api/mode", "PUT", '{"frozen": true}', Authorization=shown)).status == 401
        assert (await ask(f"/?token={words}")).status == 401
        assert installation.mode == before

    served(use)


def test_a_web_socket_needs_the_token_too() -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGlkZWdhdGUtdGlkZWdhdA=="
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"

    async def use(ask: Ask, _: Installation) -> None:
        assert (await ask(path, **upgrade)).status == 403

    served(use)


def test_a_browser_brings_the_token_once_and_gets_a_cookie_that_does_not_reveal_it() -> None:
    async def use(ask: Ask, _: Installation) -> None:
        first = await ask(f"/api/decisions?token={TOKEN}&last=3")
        assert (first.status, first.headers["location"]) == (303, "/api/decisions?last=3")
        cookie = first.headers["set-cookie"]
        assert TOKEN not in cookie
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        pair = cookie.partition(";")[0]
        assert (await ask("/api/view", Cookie=pair)).status == 200
        assert (await ask("/api/view", Cookie=pair + "0")).status == 401

    served(use)


def test_another_sites_page_cannot_use_the_cookie_to_change_something() -> None:
    body = '{"send_rate": "off", "frozen": false}'

    async def use(ask: Ask, installation: Installation) -> None:
        pair = (await ask(f"/?token={TOKEN}")).headers["set-cookie"].partition(";")[0]
        answer = await ask("/api/mode", "PUT", body, Cookie=pair, Origin="http://127.0.0.1:1")
        assert answer.status == 403
        assert installation.mode == Mode()

    served(use)


def test_an_address_that_begins_with_two_slashes_leads_nowhere_else() -> None:
    async def use(ask: Ask, _: Installation) -> None:
        assert (await ask(f"//elsewhere.example/?token={TOKEN}")).headers["location"].startswith("/elsewhere")

    served(use)


def test_the_api_shows_the_view_with_its_sentence() -> None:
    async def use(ask: Ask, _: Installation) -> None:
        view: dict[str, Any] = json.loads((await ask("/api/view", **JSON)).text)
        assert view["state"] == {"sentence": "Data is 0.4 s old. Nobody is slowed.", "severity": "good"}
        assert view["samples"][0]["devices"] == 100
        assert json.loads((await ask("/api/decisions?last=2", **JSON)).text) == []
        metrics = await ask("/metrics", **JSON)
        assert "tidegate_data_age_seconds 0.4" in metrics.text
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")

    served(use)


def test_the_page_fetches_nothing_from_elsewhere() -> None:
    async def use(ask: Ask, _: Installation) -> None:
        page = await ask("/", **JSON)
        assert page.status == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["referrer-policy"] == "no-referrer"
        assert 'src="http' not in page.text
        assert "url(http" not in page.text

    served(use)


def test_before_the_first_measurement_there_is_a_page_that_says_so() -> None:
    async def use(ask: Ask, installation: Installation) -> None:
        installation.samples = ()
        page = await ask("/", **JSON)
        assert page.status == 200
        assert "Nothing is known yet" in page.text

    served(use)


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        pytest.param("pump%201", 200, '"name":"pump 1","registered":false', id="any name has an answer"),
        pytest.param("a%23", 400, "cannot be a topic level", id="what is no name is said"),
        pytest.param("away", 503, "No broker answers: check that it runs.\n", id="nobody can be asked"),
    ],
)
def test_one_device_is_asked_about(path: str, status: int, says: str) -> None:
    async def use(ask: Ask, _: Installation) -> None:
        answer = await ask(f"/api/devices/{path}", **JSON)
        assert answer.status == status
        assert says in answer.text

    served(use)


def test_the_password_of_the_first_line_is_in_no_answer_for_programs(caplog: pytest.LogCaptureFixture) -> None:
    async def use(ask: Ask, installation: Installation) -> None:
        for path in ("/api/view", "/api/decisions", "/api/devices/hello", "/metrics", "/", "/nowhere"):
            answer = await ask(path, **JSON)
            assert PASSWORD not in answer.text, path
        assert PASSWORD not in repr(installation.view())

    with caplog.at_level(logging.DEBUG):
        served(use)
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize("last", ["0", "-1", "many", "1.5", "²"])
def test_a_wrong_number_of_decisions_is_named(last: str) -> None:
    async def use(ask: Ask, _: Installation) -> None:
        answer = await ask("/api/decisions?last=" + "".join(f"%{byte:02x}" for byte in last.encode()), **JSON)
        assert answer.status == 400
        assert "whole number" in answer.text

    served(use)


def test_the_mode_is_set_as_a_whole_or_not_at_all() -> None:
    async def use(ask: Ask, installation: Installation) -> None:
        for body in ("", "{}", '{"send_rate": "off"}', '{"send_rate": "loud", "frozen": false}', "[1]", "{"):
            answer = await ask("/api/mode", "PUT", body, **JSON)
            assert (answer.status, answer.text.count("\n")) == (400, 1), body
            assert installation.mode == Mode()
        answer = await ask("/api/mode", "PUT", '{"send_rate": "shadow", "frozen": true}', **JSON)
        assert answer.status == 200
        assert installation.mode == Mode(send_rate="shadow", frozen=True)
        assert json.loads(answer.text)["send_rate"] == "shadow"

    served(use)


def test_a_stretch_of_time_becomes_the_past_run() -> None:
    async def use(ask: Ask, _: Installation) -> None:
        for body in ("", '{"from_s": 1}', '{"from_s": 1, "to_s": 2}'):
            answer = await ask("/api/past", "PUT", body, **JSON)
            assert (answer.status, answer.text.count("\n")) == (400, 1), body
        assert (await ask("/api/past", "PUT", '{"from_s": 99.5, "to_s": 101}', **JSON)).status == 200

    served(use)


def test_a_port_in_use_is_a_sentence() -> None:
    async def use(_: Ask, __: Installation) -> None:
        raise AssertionError("it must not start")

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} of 127\.0\.0\.1 is in use"):
            served(use, port)


def test_without_a_token_it_does_not_start() -> None:
    async def use(_: Ask, __: Installation) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(UserError, match="has no token"):
        served(use, token="")


def test_signals_stay_with_the_caller() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    async def use(_: Ask, __: Installation) -> None:
        # asyncio.run itself takes SIGINT; a second handler on top of it would be uvicorn's.
        assert signal.getsignal(signal.SIGTERM) == before[1]

    served(use)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
