"""MQTT over WebSocket: the upgrade, then packets in binary frames, which need not end where packets do."""

import http
import logging

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from tidegate.gateway.layers.layer import Peer

PATH = "/mqtt"
SUBPROTOCOLS = (Subprotocol("mqtt"), Subprotocol("mqttv3.1"))
HEAD_BYTES_MAX = 8_192
HEAD_END = b"\r\n\r\n"

NO_REQUEST = "This is no HTTP request.\n"

BAD = "bad WebSocket"
TOO_LARGE = "packet too large"

NORMAL, NOT_BINARY = 1000, 1003

# What clients say, their credentials among it, must not reach a log, whatever is logged otherwise.
_SILENT = logging.Logger("silent")
_SILENT.disabled = True


class WebSocket:
    """The server's end of one WebSocket connection. Compression is not offered: it costs memory for each client."""

    __slots__ = ("_head", "_protocol", "ended", "problem")

    def __init__(self, message_bytes_max: int) -> None:
        self.problem = ""
        self.ended = False
        self._head = b""
        self._protocol = ServerProtocol(subprotocols=SUBPROTOCOLS, max_size=message_bytes_max, logger=_SILENT)

    def receive(self, data: bytes) -> bytes:
        if self.problem or self.ended or not data:
            return b""
        protocol = self._protocol
        if protocol.state is State.CONNECTING:
            data = self._receive_head(data)
            if not data:
                return b""
        protocol.receive_data(data)
        parts: list[bytes] = []
        for frame in protocol.events_received():
            assert isinstance(frame, Frame)
            if frame.opcode is Opcode.BINARY or frame.opcode is Opcode.CONT:
                parts.append(bytes(frame.data))
            elif frame.opcode is Opcode.TEXT:
                protocol.fail(NOT_BINARY, "MQTT takes binary frames")
                self.problem = BAD
                break
        self._look_at_state()
        return b"".join(parts)

    def _look_at_state(self) -> None:
        if self._protocol.state is State.OPEN or self.problem:
            return
        if (error := self._protocol.parser_exc) is None:
            self.ended = True
        else:
            self.problem = TOO_LARGE if isinstance(error, PayloadTooBig) else BAD

    def _receive_head(self, data: bytes) -> bytes:
        """What follows the upgrade request, once that has come and was granted."""
        head = self._head = self._head + data
        end = head.find(HEAD_END) + len(HEAD_END)
        if not head[:1].isalpha():
            self._refuse(http.HTTPStatus.BAD_REQUEST, NO_REQUEST)
        elif end > HEAD_BYTES_MAX or (end < len(HEAD_END) and len(head) > HEAD_BYTES_MAX):
            self._refuse(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The head of this request is too large.\n")
        elif end >= len(HEAD_END):
            self._head = b""
            self._upgrade(head[:end])
            return head[end:] if not self.problem else b""
        return b""

    def _upgrade(self, head: bytes) -> None:
        protocol = self._protocol
        protocol.receive_data(head)
        for request in protocol.events_received():
            assert isinstance(request, Request)
            if request.path.partition("?")[0] == PATH:
                self._respond(protocol.accept(request))
            else:
                self._refuse(http.HTTPStatus.NOT_FOUND, f"MQTT is at {PATH}.\n")
            return
        if not any(protocol.writes):  # a head that cannot be parsed is met with silence
            protocol.writes.append(protocol.reject(http.HTTPStatus.BAD_REQUEST, NO_REQUEST).serialize())
        self.problem = BAD

    def _refuse(self, status: http.HTTPStatus, sentence: str) -> None:
        self._respond(self._protocol.reject(status, sentence))

    def _respond(self, response: Response) -> None:
        self._protocol.send_response(response)
        if self._protocol.state is not State.OPEN:
            self.problem = BAD

    def send(self, data: bytes) -> bytes:
        if self._protocol.state is not State.OPEN:
            return b""
        self._protocol.send_binary(data)
        return self.answer()

    def answer(self) -> bytes:
        return b"".join(self._protocol.data_to_send())

    def farewell(self) -> bytes:
        if self._protocol.state is not State.OPEN:
            return b""
        self._protocol.send_close(NORMAL)
        return self.answer()

    def describe(self, peer: Peer) -> Peer:
        return peer
