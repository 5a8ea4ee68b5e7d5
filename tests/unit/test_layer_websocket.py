"""MQTT over WebSocket, against a client that is not ours: upgrades, frames, and how each refusal is said."""

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tidegate.gateway.layers.websocket import BAD, HEAD_BYTES_MAX, TOO_LARGE, WebSocket

MESSAGE_BYTES_MAX = 1_000


def client(uri: str = "ws://localhost/mqtt", subprotocol: str | None = "mqtt") -> ClientProtocol:
    offered = [Subprotocol(subprotocol)] if subprotocol else None
    made = ClientProtocol(parse_uri(uri), subprotocols=offered)
    made.send_request(made.connect())
    return made


def said(made: ClientProtocol) -> bytes:
    return b"".join(made.data_to_send())


def opened(subprotocol: str = "mqtt") -> tuple[WebSocket, ClientProtocol]:
    layer, made = WebSocket(MESSAGE_BYTES_MAX), client(subprotocol=subprotocol)
    assert layer.receive(said(made)) == b""
    made.receive_data(layer.answer())
    made.events_received()
    assert (layer.problem, made.handshake_exc, made.subprotocol) == ("", None, subprotocol)
    assert made.extensions == []
    return layer, made


def closed_with(layer: WebSocket, made: ClientProtocol) -> int:
    made.receive_data(layer.answer())
    assert made.close_rcvd is not None
    return made.close_rcvd.code


def head(line: bytes = b"GET /mqtt HTTP/1.1", **changed: bytes | None) -> bytes:
    fields: dict[str, bytes | None] = {
        "Host": b"localhost",
        "Connection": b"Upgrade",
        "Upgrade": b"websocket",
        "Sec_WebSocket_Key": b"dGhlIHNhbXBsZSBub25jZQ==",
        "Sec_WebSocket_Version": b"13",
        "Sec_WebSocket_Protocol": b"mqtt",
    }
    lines = [
        b"%s: %s" % (name.replace("_", "-").encode(), value) for name, value in (fields | changed).items() if value
    ]
    return b"\r\n".join([line, *lines, b"", b""])


@pytest.mark.parametrize("subprotocol", ["mqtt", "mqttv3.1"])
def test_packets_pass_in_binary_frames(subprotocol: str) -> None:
    layer, made = opened(subprotocol)
    made.send_binary(b"\x10\x0c", fin=False)
    made.send_continuation(b"rest", fin=True)
    made.send_binary(b"next")
    assert layer.receive(said(made)) == b"\x10\x0crestnext"
    made.receive_data(layer.send(b"answer" * 100))
    assert [(frame.opcode, bytes(frame.data)) for frame in made.events_received() if isinstance(frame, Frame)] == [
        (Opcode.BINARY, b"answer" * 100)
    ]


def test_frames_that_come_with_the_upgrade_are_not_lost() -> None:
    layer = WebSocket(MESSAGE_BYTES_MAX)
    ping, packet = b"\x89\x80\x00\x00\x00\x00", b"\x82\x82\x00\x00\x00\x00\xc0\x00"
    assert (
        layer.receive(head(b"GET /mqtt?from=browser HTTP/1.1", Origin=b"http://anywhere") + ping + packet)
        == b"\xc0\x00"
    )
    answer = layer.answer()
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert answer.endswith(b"\r\n\r\n\x8a\x00"), "the upgrade is granted first, the ping answered then"


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head(b"GET / HTTP/1.1"), 404),
        (head(b"GET /mqtt/x HTTP/1.1"), 404),
        (head(b"POST /mqtt HTTP/1.1"), 405),
        (head(b"GET /mqtt HTTP/1.0"), 505),
        (head(b"GET /mqtt HTTP/2"), 400),
        (head(Upgrade=None), 426),
        (head(Sec_WebSocket_Protocol=None), 400),
        (head(Sec_WebSocket_Protocol=b"chat"), 400),
        (head(Sec_WebSocket_Key=b"short"), 400),
        (head(Sec_WebSocket_Version=b"8"), 400),
        (head(Content_Length=b"5"), 400),
        (head(Cookie=b"x" * HEAD_BYTES_MAX), 431),
        (b"GET /" + b"x" * HEAD_BYTES_MAX, 431),
        (b"\x10\x10\x00\x04MQTT", 400),
        (b"GET\r\n\r\n", 400),
    ],
)
def test_upgrades_are_refused_in_http(request_head: bytes, status: int) -> None:
    layer = WebSocket(MESSAGE_BYTES_MAX)
    assert layer.receive(request_head) == b""
    answer, _, body = layer.answer().partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Content-Length: %d" % len(body) in answer
    assert body.endswith(b".\n")
    assert layer.problem == BAD
    assert layer.receive(head()) == b""
    assert (layer.send(b"x"), layer.farewell(), layer.answer()) == (b"", b"", b"")


def test_pings_are_answered() -> None:
    layer, made = opened()
    made.send_ping(b"alive?")
    assert layer.receive(said(made)) == b""
    made.receive_data(layer.answer())
    (pong,) = made.events_received()
    assert isinstance(pong, Frame)
    assert (pong.opcode, bytes(pong.data)) == (Opcode.PONG, b"alive?")
    assert layer.answer() == b"", "said once"


def test_text_is_no_mqtt() -> None:
    layer, made = opened()
    made.send_binary(b"good")
    made.send_text(b"hello")
    made.send_binary(b"late")
    assert layer.receive(said(made)) == b"good"
    assert layer.problem == BAD
    assert closed_with(layer, made) == CloseCode.UNSUPPORTED_DATA
    assert layer.send(b"x") == b""


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_message_has_a_limit(pieces: int) -> None:
    layer, made = opened()
    size = MESSAGE_BYTES_MAX // pieces + 1
    made.send_binary(bytes(size), fin=pieces == 1)
    for left in range(pieces - 2, -1, -1):
        made.send_continuation(bytes(size), fin=left == 0)
    layer.receive(said(made))
    assert layer.problem == TOO_LARGE
    assert closed_with(layer, made) == CloseCode.MESSAGE_TOO_BIG


@pytest.mark.parametrize(
    "frame",
    [b"\x82\x02\xc0\x00", b"\x83\x80\x00\x00\x00\x00", b"\xc2\x80\x00\x00\x00\x00", b"\x80\x80\x00\x00\x00\x00"],
    ids=["not masked", "unknown kind", "reserved bit", "continues nothing"],
)
def test_broken_frames_end_it(frame: bytes) -> None:
    layer, made = opened()
    assert layer.receive(frame) == b""
    assert layer.problem == BAD
    assert closed_with(layer, made) == CloseCode.PROTOCOL_ERROR


def test_a_client_that_closes_is_answered() -> None:
    layer, made = opened()
    made.send_binary(b"\xe0\x00")
    made.send_close(CloseCode.NORMAL_CLOSURE)
    assert layer.receive(said(made)) == b"\xe0\x00"
    assert (layer.ended, layer.problem) == (True, "")
    assert closed_with(layer, made) == CloseCode.NORMAL_CLOSURE
    assert layer.farewell() == b"", "it was said already"


def test_the_gateway_closes_politely() -> None:
    layer, made = opened()
    made.receive_data(layer.farewell())
    assert made.close_rcvd == Close(CloseCode.NORMAL_CLOSURE, "")
