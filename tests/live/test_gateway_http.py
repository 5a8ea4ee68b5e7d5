"""Readings by HTTP: acknowledged, advised, or refused with a reason."""

import socket

import pytest
from support.clients import is_closed
from support.gateways import Running
from support.readings import READING, TOKEN, post
from support.waiting import until

from tidegate.gateway import http_connections

pytestmark = pytest.mark.live


def test_a_reading_by_http_is_acknowledged_and_advised(running: Running) -> None:
    running.advise(7.5)
    with running.client("http-listener") as listener:
        listener.subscribed(("telemetry/web-1", 1))
        status, text, headers = post(running, "web-1", READING)
        assert (status, text) == (204, "")
        assert headers["tidegate-interval-s"] == "7.5"
        assert 30 < float(headers["tidegate-lifetime-s"]) <= 60
        until(lambda: listener.heard == [("telemetry/web-1", READING)])


@pytest.mark.parametrize(
    ("device", "body", "token", "status", "words"),
    [
        pytest.param("web-1", READING, "wrong", 401, "token is missing or wrong", id="a wrong token"),
        pytest.param("web-1", b"warm", TOKEN, 400, "not a reading", id="no JSON"),
        pytest.param("web-1", b'{"value": 1, "boot": 1}', TOKEN, 400, "boot and seq", id="half an identity"),
        pytest.param("web%231", READING, TOKEN, 400, "topic level", id="a device that is no topic level"),
        pytest.param("%2A", READING, TOKEN, 400, "wildcard to the broker", id="a device that is a wildcard"),
        pytest.param("web-1", bytes(70_000), TOKEN, 413, "too large", id="a body that is too large"),
    ],
)
def test_a_bad_request_is_told_why(
    running: Running, device: str, body: bytes, token: str, status: int, words: str
) -> None:
    got, text, _ = post(running, device, body, token)
    assert (got, text.count("\n")) == (status, 1)
    assert words in text


def test_silent_connections_keep_nobody_out_and_are_closed(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "HEADERS_S", 0.5)
    monkeypatch.setattr(http_connections, "CONNECTIONS_MAX", 400)
    address = running.gateway.http_address
    silent = [socket.create_connection(address, timeout=15) for _ in range(600)]
    try:
        silent[-1].sendall(b"POST /v1/telemetry/slow HTTP/1.1\r\nHost: x\r\n")
        assert post(running, "web-1", READING)[0] == 204
        assert all(is_closed(connection) for connection in (silent[0], silent[-2], silent[-1]))
        assert post(running, "web-1", READING)[0] == 204
    finally:
        for connection in silent:
            connection.close()
